"""What all sections of a configuration have in common."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fabric.catalogue import UnknownInstanceType, find_instance_type
from settings.errors import refusal


class Section(BaseModel):
    """A map of the configuration: camelCase keys, no unknown ones, no silent conversion."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        strict=True,
        hide_input_in_errors=True,
    )


def _form(pattern: str, *, what: str, example: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise refusal(f"is not {what}", f"write it like {example}")
        return text

    return AfterValidator(check)


def _known_instance_type(name: str) -> str:
    try:
        find_instance_type(name)
    except UnknownInstanceType as unknown:
        near = f"write {' or '.join(unknown.nearest)}" if unknown.nearest else "see `make catalog`"
        raise refusal("is not an instance type that the catalogue knows", near) from None
    return name


Name = Annotated[
    str,
    _form(
        r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?",
        what="a name of at most 32 lower-case letters, digits and hyphens",
        example="p5-week",
    ),
]
ShareIdentifier = Annotated[
    str,
    # https://docs.aws.amazon.com/batch/latest/APIReference/API_ShareAttributes.html
    _form(r"[A-Za-z0-9]+\*?", what="a share identifier of letters and digits", example="research"),
]
InstanceTypeName = Annotated[str, AfterValidator(_known_instance_type)]
AvailabilityZone = Annotated[
    str,
    _form(
        r"[a-z]{2}(-[a-z]+)+-\d(-[a-z]+-\d)?[a-z]",
        what="an Availability Zone's name",
        example="us-west-2a",
    ),
]
ReservationId = Annotated[
    str, _form(r"cr-[0-9a-f]{8,17}", what="the id of a reservation", example="cr-0123456789abcdef0")
]
VpcId = Annotated[
    str, _form(r"vpc-[0-9a-f]{8,17}", what="the id of a VPC", example="vpc-0123456789abcdef0")
]
SubnetId = Annotated[
    str,
    _form(r"subnet-[0-9a-f]{8,17}", what="the id of a subnet", example="subnet-0123456789abcdef0"),
]
ImageId = Annotated[
    str,
    _form(
        r"ami-[0-9a-f]{8,17}",
        what="the id of a machine image (Batch resolves no SSM path here)",
        example="ami-0123456789abcdef0",
    ),
]
StackName = Annotated[
    str,
    _form(
        r"[\w.-]+/[\w.-]+/[\w.-]+",
        what="the full name of a stack",
        example="organization/trainyard/network",
    ),
]


def _a_text(value: object) -> object:
    if not isinstance(value, str | datetime):
        raise refusal("is not a date", "write a text like 2026-12-31T00:00:00Z")
    return value


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_a_text)]
# a year, which is more than the 182 days of the longest Capacity Block
Minutes = Annotated[int, Field(ge=1, le=525_600)]


def _arn(service: str, kind: str, example: str) -> AfterValidator:
    return _form(
        rf"arn:aws[\w-]*:{service}:[\w-]*:(\d{{12}}|aws):{kind}.+",
        what=f"an ARN of {service.replace('-', ' ')}",
        example=example,
    )


ResourceGroupArn = Annotated[
    str,
    _arn("resource-groups", "group/", "arn:aws:resource-groups:us-west-2:123456789012:group/pool"),
]
PolicyArn = Annotated[
    str, _arn("iam", "policy/", "arn:aws:iam::123456789012:policy/training-boundary")
]
RoleArn = Annotated[str, _arn("iam", "role/", "arn:aws:iam::123456789012:role/training")]
InstanceProfileArn = Annotated[
    str, _arn("iam", "instance-profile/", "arn:aws:iam::123456789012:instance-profile/training")
]
KmsKeyArn = Annotated[str, _arn("kms", "key/", "arn:aws:kms:us-west-2:123456789012:key/0123-4567")]
TopicArn = Annotated[str, _arn("sns", "", "arn:aws:sns:us-west-2:123456789012:training-alarms")]
BucketArn = Annotated[
    str,
    _form(
        r"arn:aws[\w-]*:s3:::[a-z0-9.-]+",
        what="the ARN of an S3 bucket",
        example="arn:aws:s3:::training-data",
    ),
]
