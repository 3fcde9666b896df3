"""What a new network, an existing one and another stack's have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi import Input


@dataclass(frozen=True, kw_only=True)
class NetworkParts:
    """A VPC, one private subnet for each Availability Zone, and what nodes need to reach out.

    `way_out` are resources that must exist before a node can pull an image: routes and endpoints.
    """

    vpc_id: Input[str]
    private_subnet_ids: Mapping[str, Input[str]]
    way_out: Sequence[pulumi.Resource] = ()
