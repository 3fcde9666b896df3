"""What resource inputs cannot show, so that no rule of the pack judges it."""

from collections.abc import Mapping

LEFT_OUT: Mapping[str, str] = {
    "R42": "When a Capacity Block ends is in no input of a resource. The settings of this project "
    "know it and bound job timeouts by it.",
    "R47": "`aws.ec2.CapacityReservation` has no start date, so no program can ask for a "
    "reservation in the future.",
    "R79": "The share identifier is given when a job is submitted, not when a queue is made.",
}
"""Why each rule of the project's reference list that the pack lacks is not here, by its number."""
