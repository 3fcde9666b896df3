"""Network interfaces, subnets and security groups: what must pass, and what must stay unsaid."""

from collections.abc import Iterator
from typing import Any

import pytest

from fabric.catalogue import instance_types
from policy.examples import interface, resource
from policy.judge import findings
from policy.program import Program
from policy.rule import Rule
from policy.rules import (
    interface_settings,
    interface_types,
    interfaces,
    node_subnets,
    open_ingress,
    security_groups,
)
from policy.tokens import (
    BATCH_ENVIRONMENT,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    SECURITY_GROUP,
    SECURITY_GROUP_INGRESS_RULE,
    SECURITY_GROUP_RULE,
    SUBNET,
)
from policy.values import UNKNOWN
from tests.policy.mutations import Rows

RULES: dict[str, Rule] = {
    rule.id: rule
    for module in (
        interface_settings,
        interface_types,
        interfaces,
        node_subnets,
        open_ingress,
        security_groups,
    )
    for rule in module.RULES
}
SELF: dict[str, Any] = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
GROUP = "sg-0123456789abcdef0"


def found(rows: Rows, *only: str, **options: Any) -> list[str]:
    """The ids of the mandatory rules, or of those named, that the rows break."""
    return [
        rule.id
        for rule in RULES.values()
        if (rule.id in only if only else rule.level == "mandatory")
        for row in rows
        if row["type"] in rule.types
        for _ in findings(rule, row, Program(rows), rule.defaults() | options)
    ]


def launched(instance_type: str, layout: list[dict[str, Any]], **compute: Any) -> Rows:
    """A Batch environment with nodes of this layout."""
    return [
        resource(LAUNCH_TEMPLATE, "nodes", networkInterfaces=layout),
        resource(
            BATCH_ENVIRONMENT,
            "batch",
            links={"computeResources": ["nodes", *(["private"] if compute else [])]},
            computeResources={"instanceTypes": [instance_type], **compute},
        ),
    ]


# --- layouts that launch --------------------------------------------------------------------------


def one_address(cards: int) -> Iterator[dict[str, Any]]:
    yield interface(0, 0, "interface")
    yield from (interface(card, 0 if card else 1) for card in range(cards))


LAYOUTS = {
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    "p5 with one address": ("p5.48xlarge", [*one_address(32)]),
    "p5 with the most IP bandwidth": (
        "p5.48xlarge",
        [*one_address(32), *(interface(card, 1, "interface") for card in range(4, 32, 4))],
    ),
    "p6-b200": ("p6-b200.48xlarge", [*one_address(8)]),
    "p6-b300, whose card 0 has no EFA": (
        "p6-b300.48xlarge",
        [interface(0, 0, "interface"), *(interface(card, 0) for card in range(1, 17))],
    ),
    "p6e-gb200 with four EFA": (
        "p6e-gb200.36xlarge",
        [interface(0, 0, "interface"), *(interface(card, 0) for card in (1, 5, 9, 13))],
    ),
    "p6e-gb200 with eight EFA": (
        "p6e-gb200.36xlarge",
        [interface(0, 0, "interface"), *(interface(card, 0) for card in range(1, 17, 2))],
    ),
    # https://github.com/aws/aws-parallelcluster/pull/6930
    "p6e-gb200 of ParallelCluster": (
        "p6e-gb200.36xlarge",
        [
            interface(0, 0, "interface"),
            *(interface(card, 0, "efa-only" if card % 2 else "efa") for card in range(1, 17)),
        ],
    ),
    # https://github.com/awslabs/awsome-distributed-training: 1.architectures/3.aws-batch
    "p5 with efa at device 0 of every card": (
        "p5.48xlarge",
        [interface(card, 0, "efa") for card in range(32)],
    ),
    "p4d with devices counted over the cards": (
        "p4d.24xlarge",
        [interface(card, card, "efa") for card in range(4)],
    ),
    # https://github.com/eksctl-io/eksctl: pkg/cfn/builder/network_interfaces.go
    "trn1 with device 1 on further cards": (
        "trn1.32xlarge",
        [interface(0, 0, "efa"), *(interface(card, 1) for card in range(1, 8))],
    ),
    "hpc6id with one slot a card": ("hpc6id.32xlarge", [interface(0, 0, "efa"), interface(1, 0)]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_that_aws_documents_passes_every_mandatory_rule(layout: str) -> None:
    assert found(launched(*LAYOUTS[layout])) == []


@pytest.mark.parametrize(
    "name", [each.name for each in instance_types().values() if each.efa_cards]
)
def test_the_classic_layout_of_every_type_with_efa_on_card_0_passes(name: str) -> None:
    known = instance_types()[name]
    slots = {card.index: card.maximum_interfaces for card in known.network_cards}
    layout = [
        interface(card, min(1, slots[card] - 1) if card else 0, "efa-only" if card else "efa")
        for card in known.efa_cards
    ]
    start = [] if 0 in known.efa_cards else [interface(0, 0, "interface")]
    assert found(launched(name, start + layout)) == []


def test_outputs_with_empty_settings_read_like_a_template_without_them() -> None:
    empty: dict[str, Any] = {
        "associatePublicIpAddress": "",
        "deleteOnTermination": "",
        "ipv4AddressCount": 0,
        "ipv4Addresses": [],
        "ipv6Prefixes": None,
        "primaryIpv6": "",
        "privateIpAddress": "",
        "subnetId": "",
    }
    layout = [interface(0, 0, "", **empty), interface(0, 1, **empty)]
    (template, batch) = launched("g4dn.8xlarge", layout)
    template["inputs"] |= {"vpcSecurityGroupIds": [], "cpuOptions": {"coreCount": 0}}
    template["inputs"] |= {"secondaryInterfaces": []}
    assert found([template, batch], *RULES) == []


# --- what a preview does not know -----------------------------------------------------------------


@pytest.mark.parametrize(
    "layout",
    [
        UNKNOWN,
        [UNKNOWN, interface(0, 1)],
        [
            interface(0, 0, "interface"),
            interface(0, 1),
            interface(1, 0) | {"interfaceType": UNKNOWN},
        ],
        [interface(0, 0, "efa") | {"networkCardIndex": UNKNOWN}],
    ],
)
def test_what_an_unknown_interface_may_be_is_not_missed(layout: Any) -> None:
    assert found(launched("p4d.24xlarge", layout, placementGroup="training"), *RULES) == []


def test_a_node_without_launcher_may_have_less_efa_than_its_type() -> None:
    alone = resource(
        LAUNCH_TEMPLATE, instanceType="p4d.24xlarge", networkInterfaces=[interface(0, 0, "efa")]
    )
    assert found([alone]) == []


def test_type_rules_are_silent_about_families_and_types_nobody_knows() -> None:
    for name in ("optimal", "p5", "p99.48xlarge", ""):
        assert found(launched(name, [interface(0, 0, "efa"), interface(40, 0)])) == []


# --- subnets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vcpus", "fits"), [(5 * 32, True), (6 * 32, False)])
def test_the_task_of_each_batch_node_takes_an_address_too(vcpus: int, fits: bool) -> None:
    subnet = resource(SUBNET, "private", cidrBlock="10.0.0.0/28")  # 11 addresses
    compute = {"maxVcpus": vcpus, "subnets": ["subnet-0123456789abcdef0"]}
    layout = [interface(0, 0, "interface"), interface(0, 1)]
    rows = [subnet, *launched("g4dn.8xlarge", layout, **compute)]
    assert (found(rows, "subnet-has-room-for-nodes") == []) == fits


def test_addresses_of_subnets_from_elsewhere_are_not_guessed() -> None:
    subnet = resource(SUBNET, "private", cidrBlock="10.0.0.0/28")
    compute = {"maxVcpus": 6400, "subnets": ["subnet-0aaa", "subnet-0bbb"]}
    rows = [subnet, *launched("g4dn.8xlarge", [interface(0, 0, "efa")], **compute)]
    assert found(rows) == []


def test_a_template_that_refuses_a_public_address_may_use_a_public_subnet() -> None:
    subnet = resource(SUBNET, "private", mapPublicIpOnLaunch=True)
    layout = [interface(0, 0, "interface", associatePublicIpAddress="false"), interface(0, 1)]
    rows = [subnet, *launched("g4dn.8xlarge", layout, subnets=["subnet-0123456789abcdef0"])]
    assert found(rows) == []


def test_a_region_is_not_accused_of_a_type_that_one_of_two_is() -> None:
    subnet = resource(SUBNET, "private", availabilityZone="us-west-1a")
    nodes = resource(
        NODE_GROUP,
        links={"subnetIds": ["private"]},
        subnetIds=["subnet-0123456789abcdef0"],
        instanceTypes=["p4de.24xlarge", "p5.48xlarge"],
    )
    assert found([subnet, nodes]) == []


def test_a_type_that_the_configuration_calls_new_is_not_judged() -> None:
    rule = RULES["instance-type-in-region"]
    assert found(list(rule.bad), rule.id, newTypes=["p4de.24xlarge"]) == []  # pyright: ignore[reportArgumentType]


# --- security groups ------------------------------------------------------------------------------


def with_group(*links: str, groups: list[Any], **group: Any) -> Rows:
    """A template with EFA in these groups, and a group `efa`."""
    return [
        resource(SECURITY_GROUP, "efa", **group),
        resource(
            LAUNCH_TEMPLATE,
            "nodes",
            links={"networkInterfaces": ["efa", *links]},
            networkInterfaces=[interface(0, 0, "efa", securityGroups=groups)],
        ),
    ]


@pytest.mark.parametrize("groups", [[UNKNOWN], [GROUP]])
def test_the_older_rule_resource_counts_as_well(groups: list[Any]) -> None:
    links = {"securityGroupId": ["efa"], "sourceSecurityGroupId": ["efa"]}
    rules = [
        resource(
            SECURITY_GROUP_RULE,
            direction,
            links=links,
            type=direction,
            protocol="all",
            securityGroupId=UNKNOWN,
            sourceSecurityGroupId=UNKNOWN,
        )
        for direction in ("ingress", "egress")
    ]
    rows = with_group(groups=groups)
    assert found([*rows, *rules]) == []
    assert found([*rows, rules[0]]) == ["efa-group-allows-itself-out"]


def test_one_group_of_several_may_hold_the_rules() -> None:
    helper = resource(SECURITY_GROUP, "helper", ingress=[SELF], egress=[SELF])
    rows = with_group("helper", groups=[UNKNOWN, UNKNOWN])
    assert found([helper, *rows]) == []


def test_nothing_is_said_where_a_group_comes_from_elsewhere() -> None:
    """Such as the security group of an EKS cluster, which allows itself in and out."""
    assert found(with_group(groups=[GROUP, "sg-0fedcba9876543210"])) == []
    assert found(with_group(groups=["sg-0fedcba9876543210", UNKNOWN])) == []
    cluster = resource("aws:eks/cluster:Cluster", "cluster")
    assert found([cluster, *with_group("cluster", groups=[UNKNOWN, UNKNOWN])]) == []


def test_rules_nobody_knows_yet_are_not_missed() -> None:
    assert found(with_group(groups=[UNKNOWN], ingress=UNKNOWN, egress=[UNKNOWN])) == []
    half_known = [{**SELF, "self": UNKNOWN}]
    assert found(with_group(groups=[UNKNOWN], ingress=half_known, egress=half_known)) == []


def test_a_rule_from_another_group_is_not_taken_for_one_from_itself() -> None:
    rule = resource(
        SECURITY_GROUP_INGRESS_RULE,
        links={"securityGroupId": ["efa"]},
        securityGroupId=GROUP,
        referencedSecurityGroupId="sg-0fedcba9876543210",
        ipProtocol="-1",
    )
    rows = [*with_group(groups=[GROUP], egress=[SELF]), rule]
    assert found(rows, "efa-group-allows-itself-in") == ["efa-group-allows-itself-in"]


def test_separate_rules_that_a_refresh_shows_inline_do_not_count_as_inline() -> None:
    rule = RULES["group-rules-inline-or-separate"]
    rows = [{**row, "inputs": dict(row["inputs"])} for row in rule.good]
    rows[0]["inputs"] |= {"ingress": [SELF], "egress": [SELF]}
    assert found(rows, rule.id) == []


def test_an_environment_with_groups_of_its_own_needs_no_default_group() -> None:
    rule = RULES["default-group-lets-tasks-talk"]
    rows: Rows = [dict(row) for row in rule.bad]
    (batch,) = [row for row in rows if row["type"] == BATCH_ENVIRONMENT]
    for groups in ([GROUP], UNKNOWN):
        settings = {**batch["inputs"]["computeResources"], "securityGroupIds": groups}
        batch["inputs"] = {"computeResources": settings}
        assert found(rows, rule.id) == []


# --- open ports -----------------------------------------------------------------------------------


def opened(**rule: Any) -> list[str]:
    names = ("administration-closed-to-world", "ingress-closed-to-world")
    return found([resource(SECURITY_GROUP_INGRESS_RULE, **rule)], *names)


@pytest.mark.parametrize(
    "rule",
    [
        {"ipProtocol": "tcp", "fromPort": 1, "toPort": 1024},
        {"ipProtocol": "6", "fromPort": "3389", "toPort": "3389"},
        {"ipProtocol": "udp", "fromPort": 0, "toPort": 65535},
        {"ipProtocol": "-1"},
        {"ipProtocol": -1},
    ],
)
def test_a_range_over_an_administration_port_is_mandatory(rule: dict[str, Any]) -> None:
    assert opened(cidrIpv4="0.0.0.0/0", **rule) == ["administration-closed-to-world"]


@pytest.mark.parametrize("block", ["0.0.0.0/0", "10.1.2.3/0", "128.0.0.0/1", "::/0", "0:0::/0"])
def test_the_internet_has_many_names(block: str) -> None:
    key = "cidrIpv6" if ":" in block else "cidrIpv4"
    rule = {"ipProtocol": "tcp", "fromPort": 8888, "toPort": 8888, key: block}
    assert opened(**rule) == ["ingress-closed-to-world"]


def test_ping_and_path_mtu_messages_may_come_from_anywhere() -> None:
    assert opened(cidrIpv4="0.0.0.0/0", ipProtocol="icmp", fromPort=3, toPort=4) == []


def test_a_port_that_the_configuration_calls_public_may_be_open() -> None:
    rule = RULES["ingress-closed-to-world"]
    assert found(list(rule.bad), rule.id, publicPorts=[8888]) == []  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("port", [80, 443])
def test_a_website_may_be_open_to_all(port: int) -> None:
    assert opened(cidrIpv4="0.0.0.0/0", ipProtocol="tcp", fromPort=port, toPort=port) == []
