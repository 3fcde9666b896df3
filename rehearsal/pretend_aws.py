"""An AWS that exists only in this process: it answers ids, ARNs and look-ups, always the same.

Everything follows from type and name of a resource and from the stack's configuration, so that two
rehearsals of one configuration are equal. It opens no connection and reads no credentials.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from ipaddress import IPv4Network
from typing import cast

from rehearsal.aws_kinds import DEFAULT, KINDS, Kind
from rehearsal.configuration import StackConfiguration
from rehearsal.model import Json
from rehearsal.policy_document import policy_document

ACCOUNT = "123456789012"
VPC_CIDR = IPv4Network("10.0.0.0/16")
SUBNET_CIDRS = tuple(VPC_CIDR.subnets(new_prefix=20))
RESERVED_ADDRESSES = 5  # https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html

Mapped = Mapping[str, Json]


class UnknownLookUpError(LookupError):
    """The program looks up something that the pretend AWS has no answer for."""


class PretendAws:
    """Answers for one stack.

    A program finds an existing network, and what other stacks have put out, as the configuration
    describes them (the keys `network` and `placement` of the project).

    `region` is what the stack states, or us-east-1 so that a program without one can be judged.
    """

    def __init__(self, configuration: StackConfiguration) -> None:
        self._configuration = configuration
        self.region = configuration.region or "us-east-1"

    def create(
        self, *, type_: str, name: str, inputs: Mapped, region: str | None = None
    ) -> tuple[str, dict[str, Json]]:
        """The id and the outputs, beyond its inputs, of a new resource.

        `region` is that of the resource's provider; the resource's own `region` input wins.
        """
        digest = _digest(type_, name)
        if not type_.startswith("aws:"):
            return _uuid(digest), {}
        kind = KINDS.get(type_, DEFAULT)
        facts = {key: value for key, value in inputs.items() if isinstance(value, str)}
        facts |= self._place(facts.get("region") or region or self.region)
        facts |= {
            "hex": digest[:16],
            "uuid": _uuid(digest),
            "name": _physical_name(kind, name, inputs, digest),
            "path": facts.get("path", "/"),
            "service": type_.split(":")[1].split("/")[0],
            "kind": _kebab(type_.rsplit(":", 1)[1]),
        }
        if kind.id is not None:
            facts["id"] = kind.id.format_map(facts)
        arn = facts["arn"] = f"arn:{facts['partition']}:{kind.arn.format_map(facts)}"
        outputs: dict[str, Json] = {"arn": arn, "region": facts["region"]}
        if kind.name_input is not None:
            outputs[kind.name_input] = facts["name"]
        if "tags" in inputs:
            outputs["tagsAll"] = inputs["tags"]
        for key, value in kind.outputs.items():
            outputs[key] = value.format_map(facts) if isinstance(value, str) else value
        return facts.get("id", arn), outputs

    def read(
        self, *, type_: str, name: str, id_: str, state: Mapped, region: str | None = None
    ) -> dict[str, Json]:
        """The outputs of something that exists: another stack, or a resource by its id."""
        if type_ == "pulumi:pulumi:StackReference":
            return {"name": id_, "outputs": self.stack_outputs(id_), "secretOutputNames": []}
        return self.create(type_=type_, name=id_ or name, inputs=state, region=region)[1]

    def stack_outputs(self, stack: str) -> dict[str, Json]:
        """What another stack has put out, as far as this stack's configuration speaks of it."""
        outputs: dict[str, Json] = {}
        if self._network.get("stack") == stack:
            outputs["network"] = {
                "vpcId": _ec2_id("vpc", stack),
                "vpcCidr": str(VPC_CIDR),
                "privateSubnetIds": {z: _ec2_id("subnet", stack, z) for z in self._zones},
                "publicSubnetIds": {z: _ec2_id("subnet", stack, "public", z) for z in self._zones},
                "efaSecurityGroupId": _ec2_id("sg", stack, "efa"),
                "defaultSecurityGroupId": _ec2_id("sg", stack, "default"),
            }
        placement = {
            reservation["name"]: {
                "capacityReservationId": _ec2_id("cr", stack, reservation["name"]),
                "placementGroup": group
                if isinstance(group, str)
                else f"{reservation['name']}-group",
                "availabilityZone": zone,
            }
            for reservation, group, zone in self._foreign_reservations()
            if reservation["stack"] == stack
        }
        return outputs | ({"placement": placement} if placement else {})

    def look_up(
        self, token: str, arguments: Mapped, *, region: str | None = None
    ) -> dict[str, Json]:
        """The answer to an invoke such as `aws:ec2/getSubnet:getSubnet`.

        Raises:
            UnknownLookUpError: No answer is known for this token.
        """
        answers: Mapping[str, Callable[[Mapped, str], dict[str, Json]]] = {
            "aws:ec2/getAmi:getAmi": self._image,
            "aws:ec2/getSecurityGroup:getSecurityGroup": self._security_group,
            "aws:ec2/getSecurityGroups:getSecurityGroups": self._security_groups,
            "aws:ec2/getSubnet:getSubnet": self._subnet,
            "aws:ec2/getSubnets:getSubnets": self._subnets,
            "aws:ec2/getVpc:getVpc": self._vpc,
            "aws:iam/getPolicyDocument:getPolicyDocument": lambda given, _: policy_document(given),
            "aws:index/getAvailabilityZones:getAvailabilityZones": self._availability_zones,
            "aws:index/getCallerIdentity:getCallerIdentity": self._caller,
            "aws:index/getPartition:getPartition": self._partition_of,
            "aws:index/getRegion:getRegion": self._region_of,
            "aws:ssm/getParameter:getParameter": self._parameter,
        }
        if token not in answers:
            raise UnknownLookUpError(token)
        return answers[token](arguments, region or self.region)

    @cached_property
    def _network(self) -> Mapped:
        return _mapping(self._configuration.section("network"))

    @cached_property
    def _existing(self) -> Mapped:
        return _mapping(self._network.get("existing"))

    @cached_property
    def _zones(self) -> tuple[str, ...]:
        """The zones of the network, else every zone named anywhere, else the region's first."""
        stated = self._network.get("availabilityZones") or self._existing.get("availabilityZones")
        named = stated or _values_of("availabilityZone", dict(self._configuration.values))
        return tuple(dict.fromkeys(map(str, named))) or (f"{self.region}a",)

    def _foreign_reservations(self) -> Iterator[tuple[Mapped, Json, str]]:
        for entry in _mapping(self._configuration.section("placement")).values():
            stated = _mapping(entry)
            reservation = _mapping(stated.get("reservation"))
            if {"stack", "name"} <= set(reservation):
                zone = stated.get("availabilityZone") or self._zones[0]
                yield reservation, stated.get("placementGroup"), zone

    def _place(self, region: str) -> dict[str, str]:
        return {"region": region, "account": ACCOUNT, "partition": _partition(region)}

    def _subnet(self, arguments: Mapped, region: str) -> dict[str, Json]:
        id_ = str(arguments.get("id") or _ec2_id("subnet", repr(sorted(arguments.items()))))
        position, zone = self._position_of_subnet(id_)
        cidr = SUBNET_CIDRS[position % len(SUBNET_CIDRS)]
        return {
            "id": id_,
            "arn": f"arn:{_partition(region)}:ec2:{region}:{ACCOUNT}:subnet/{id_}",
            "availabilityZone": zone,
            "cidrBlock": str(cidr),
            "vpcId": str(arguments.get("vpcId") or self._existing.get("vpcId", "vpc-0")),
            "mapPublicIpOnLaunch": False,
            "availableIpAddressCount": cidr.num_addresses - RESERVED_ADDRESSES,
            "ownerId": ACCOUNT,
            "state": "available",
        }

    def _subnets(self, arguments: Mapped, region: str) -> dict[str, Json]:
        stated = self._existing.get("privateSubnetIds")
        made = [_ec2_id("subnet", repr(sorted(arguments.items())), zone) for zone in self._zones]
        return {"id": region, "ids": stated or made}

    def _position_of_subnet(self, id_: str) -> tuple[int, str]:
        """A subnet's place in the VPC and its zone: the i-th has the i-th zone that is named."""
        private: list[str] = self._existing.get("privateSubnetIds") or []
        public: list[str] = self._existing.get("publicSubnetIds") or []
        for ids, offset in ((private, 0), (public, len(private))):
            if id_ in ids:
                position = ids.index(id_)
                zones = self._existing.get("availabilityZones") or self._zones
                return position + offset, str(zones[min(position, len(zones) - 1)])
        return len(private) + len(public), self._zones[0]

    def _vpc(self, arguments: Mapped, region: str) -> dict[str, Json]:
        id_ = str(arguments.get("id") or self._existing.get("vpcId") or _ec2_id("vpc", region))
        return {
            "id": id_,
            "arn": f"arn:{_partition(region)}:ec2:{region}:{ACCOUNT}:vpc/{id_}",
            "cidrBlock": str(VPC_CIDR),
            "cidrBlockAssociations": [{"cidrBlock": str(VPC_CIDR), "state": "associated"}],
            "enableDnsHostnames": True,
            "enableDnsSupport": True,
            "mainRouteTableId": _ec2_id("rtb", id_),
            "ownerId": ACCOUNT,
            "state": "available",
        }

    def _security_group(self, arguments: Mapped, region: str) -> dict[str, Json]:
        name, vpc = arguments.get("name"), arguments.get("vpcId")
        id_ = str(arguments.get("id") or _ec2_id("sg", str(vpc), str(name or "default")))
        return {
            "id": id_,
            "arn": f"arn:{_partition(region)}:ec2:{region}:{ACCOUNT}:security-group/{id_}",
            "name": name or "default",
            "vpcId": vpc,
        }

    def _security_groups(self, arguments: Mapped, region: str) -> dict[str, Json]:
        filters = {each["name"]: each["values"][0] for each in arguments.get("filters") or ()}
        one = self._security_group(
            {"name": filters.get("group-name"), "vpcId": filters.get("vpc-id")}, region
        )
        found = {"ids": [one["id"]], "arns": [one["arn"]], "vpcIds": [one["vpcId"]]}
        return {"id": region, "region": region, **found}

    def _parameter(self, arguments: Mapped, region: str) -> dict[str, Json]:
        name = str(arguments["name"])
        return {
            "id": name,
            "name": name,
            "arn": f"arn:{_partition(region)}:ssm:{region}:{ACCOUNT}:parameter{name}",
            "type": "String",
            "value": _ec2_id("ami", region, name),
            "version": 1,
        }

    def _image(self, arguments: Mapped, region: str) -> dict[str, Json]:
        id_ = _ec2_id("ami", region, repr(sorted(arguments.items())))
        return {"id": id_, "imageId": id_, "architecture": "x86_64"}

    def _availability_zones(self, _: Mapped, region: str) -> dict[str, Json]:
        names = sorted({*self._zones, *(f"{region}{letter}" for letter in "abc")})
        return {"id": region, "names": names, "zoneIds": names}

    def _caller(self, _: Mapped, region: str) -> dict[str, Json]:
        arn = f"arn:{_partition(region)}:sts::{ACCOUNT}:assumed-role/rehearsal/rehearsal"
        return {"id": ACCOUNT, "accountId": ACCOUNT, "arn": arn, "userId": "AROAREHEARSAL"}

    def _partition_of(self, _: Mapped, region: str) -> dict[str, Json]:
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        reverse = ".".join(reversed(suffix.split(".")))
        partition = _partition(region)
        facts = {"id": partition, "partition": partition, "dnsSuffix": suffix}
        return facts | {"reverseDnsPrefix": reverse}

    def _region_of(self, arguments: Mapped, region: str) -> dict[str, Json]:
        name = str(arguments.get("region") or arguments.get("name") or region)
        return {"id": name, "name": name, "region": name, "description": name}


def _physical_name(kind: Kind, name: str, inputs: Mapped, digest: str) -> str:
    """The stated name, else the logical one with the seven digits that Pulumi appends."""
    wanted = kind.name_input or "name"
    stated, prefix = inputs.get(wanted), inputs.get(f"{wanted}Prefix")
    return str(stated or (f"{prefix}{digest[:7]}" if prefix else f"{name}-{digest[:7]}"))


def _partition(region: str) -> str:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html."""
    prefixes = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
    return next((p for prefix, p in prefixes.items() if region.startswith(prefix)), "aws")


def _digest(*parts: str) -> str:
    return hashlib.sha256("::".join(parts).encode()).hexdigest()


def _ec2_id(prefix: str, *parts: str) -> str:
    return f"{prefix}-0{_digest(prefix, *parts)[:16]}"


def _uuid(digest: str) -> str:
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _kebab(camel: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", camel).lower()


def _mapping(value: Json) -> Mapped:
    return cast("Mapped", value) if isinstance(value, dict) else {}


def _values_of(key: str, value: Json) -> list[str]:
    """Every text below this key, anywhere inside the value, in the order of the file."""
    if isinstance(value, list):
        return [found for each in cast("list[Json]", value) for found in _values_of(key, each)]
    found: list[str] = []
    for name, each in _mapping(value).items():
        found += [each] if name == key and isinstance(each, str) else _values_of(key, each)
    return found
