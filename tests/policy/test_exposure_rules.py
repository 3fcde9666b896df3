"""Documents, ports and gateways whose verdict is not obvious."""

import json
from typing import Any

import pytest

from policy.documents import statements
from policy.examples import resource
from policy.judge import findings
from policy.ports import keeps_out
from policy.program import Program
from policy.rules import fsx_access, identity, security, storage, vpc
from policy.tokens import (
    BUCKET,
    BUCKET_POLICY,
    BUCKET_V2,
    BUCKET_WEBSITE,
    BUCKET_WEBSITE_V2,
    DATA_REPOSITORY_ASSOCIATION,
    FLOW_LOG,
    IAM_POLICY,
    IAM_ROLE,
    IAM_ROLE_POLICY_ATTACHMENT,
    INTERNET_GATEWAY,
    LUSTRE_FILE_SYSTEM,
    ROUTE,
    ROUTE_TABLE,
    SECURITY_GROUP,
)
from policy.values import UNKNOWN

RULES = {
    rule.id: rule
    for module in (fsx_access, identity, security, storage, vpc)
    for rule in module.RULES
}


def verdict(rule_id: str, *rows: dict[str, Any]) -> list[str]:
    rule, program = RULES[rule_id], Program(rows)
    return [
        finding.message
        for row in rows
        if row["type"] in rule.types
        for finding in findings(rule, row, program, rule.defaults())
    ]


def document(**statement: object) -> str:
    return json.dumps({"Statement": {"Effect": "Allow", **statement}})


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"Statement": "x"}', "[" * 100_000])
def test_what_is_no_document_has_no_statements(text: str) -> None:
    assert statements(text) == []


def test_actions_match_whatever_their_case_and_brackets_are_plain_characters() -> None:
    (one,) = statements(document(Action="S3:getobject", Resource="arn:aws:s3:::a[b]*"))
    assert one.grants("s3:GetObject")
    assert one.covers("arn:aws:s3:::a[b]/key")
    assert not one.covers("arn:aws:s3:::ab/key")


def test_a_denial_for_everybody_opens_nothing() -> None:
    deny = json.dumps({"Statement": {"Effect": "Deny", "Principal": "*", "Action": "s3:*"}})
    assert not verdict("resource-policy-not-for-anyone", resource(BUCKET_POLICY, policy=deny))


@pytest.mark.parametrize("site_type", [BUCKET_WEBSITE, BUCKET_WEBSITE_V2])
def test_everybody_may_read_a_website_and_no_more(site_type: str) -> None:
    def guilty(action: str, *more: dict[str, Any]) -> bool:
        public = document(Principal="*", Action=action, Resource="*")
        policy = resource(
            BUCKET_POLICY, "policy", links={"bucket": ["data"]}, bucket=UNKNOWN, policy=public
        )
        rows = [resource(BUCKET_V2, "data", bucket="data"), policy, *more]
        rules = ("only-websites-are-public", "resource-policy-not-for-anyone")
        return any(verdict(rule, *rows) for rule in rules)

    site = resource(site_type, "site", links={"bucket": ["data"]}, bucket=UNKNOWN)
    other = resource(site_type, "site", bucket="other")
    assert not guilty("s3:GetObject", site)
    assert guilty("s3:GetObject")
    assert guilty("s3:GetObject", other)
    for action in ("s3:PutObject", "s3:*", "s3:Get*"):
        assert guilty(action, site)


def test_a_website_may_have_a_public_acl_to_read() -> None:
    website = {"indexDocument": "index.html"}
    rules = ("only-websites-are-public", "bucket-acl-not-public")
    for acl, guilty in (("public-read", False), ("public-read-write", True)):
        row = resource(BUCKET, acl=acl, website=website)
        assert any(verdict(rule, row) for rule in rules) == guilty


def test_a_permissions_boundary_and_a_condition_limit_what_is_allowed() -> None:
    everything = resource(IAM_POLICY, "policy", policy=document(Action="*", Resource="*"))
    bounded = resource(
        IAM_ROLE, links={"permissionsBoundary": ["policy"]}, permissionsBoundary=UNKNOWN
    )
    assert verdict("iam-not-everything", everything)
    assert not verdict("iam-not-everything", everything, bounded)
    with_mfa = {"Bool": {"aws:MultiFactorAuthPresent": "true"}}
    conditional = document(Action="*", Resource="*", Condition=with_mfa)
    assert not verdict("iam-not-everything", resource(IAM_POLICY, policy=conditional))


@pytest.mark.parametrize(
    "destination",
    [
        {"logGroupName": "flow", "iamRoleArn": "arn:aws:iam::123456789012:role/flow"},
        {"logDestination": "arn:aws-us-gov:s3:::logs"},
        {"logDestination": "arn:aws-cn:s3:::logs/vpc"},
    ],
)
def test_a_flow_log_may_name_its_group_or_a_bucket_of_any_partition(
    destination: dict[str, Any],
) -> None:
    assert not verdict("flow-log-has-role", resource(FLOW_LOG, **destination))


def test_an_import_policy_of_none_is_none() -> None:
    def file_system(policy: str) -> list[dict[str, Any]]:
        settings: dict[str, Any] = {"deploymentType": "PERSISTENT_2", "autoImportPolicy": policy}
        association = resource(
            DATA_REPOSITORY_ASSOCIATION, links={"fileSystemId": ["data"]}, fileSystemId=UNKNOWN
        )
        return [resource(LUSTRE_FILE_SYSTEM, "data", **settings), association]

    for rule in ("fsx-import-path", "fsx-data-repository"):
        assert not verdict(rule, *file_system("NONE"))
        assert verdict(rule, *file_system("NEW"))


def test_what_a_backup_says_of_a_file_system_is_not_known() -> None:
    settings: dict[str, Any] = {"perUnitStorageThroughput": 250, "storageCapacity": 4800}
    assert verdict("fsx-throughput", resource(LUSTRE_FILE_SYSTEM, **settings))
    restored = resource(LUSTRE_FILE_SYSTEM, **settings, backupId="backup-0123456789abcdef0")
    assert not verdict("fsx-throughput", restored)


def test_an_administrator_that_no_job_can_become_is_not_judged() -> None:
    administrator = resource(
        IAM_ROLE_POLICY_ATTACHMENT,
        links={"role": ["deployer"]},
        role=UNKNOWN,
        policyArn="arn:aws:iam::aws:policy/AdministratorAccess",
    )
    for service, guilty in (("codebuild.amazonaws.com", False), ("ec2.amazonaws.com", True)):
        trust = document(Principal={"Service": service}, Action="sts:AssumeRole")
        role = resource(IAM_ROLE, "deployer", assumeRolePolicy=trust)
        assert bool(verdict("compute-role-no-administrator", role, administrator)) == guilty


def test_two_rules_may_open_a_range_together() -> None:
    def ingress(first: object, last: object) -> dict[str, Any]:
        return {"protocol": "tcp", "fromPort": first, "toPort": last, "self": True}

    wanted = [(1018, 1023)]
    for rules, closed in (
        ([ingress(1018, 1020), ingress("1021", "1023")], []),
        ([ingress(1018, 1020), ingress(1022, 1023)], wanted),
        ([ingress(UNKNOWN, UNKNOWN)], []),
        ([{"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}], []),
    ):
        group = resource(SECURITY_GROUP, ingress=rules)
        assert keeps_out([group], Program([group]), wanted) == closed


@pytest.mark.parametrize(
    ("kind", "sizes", "good"),
    [
        ({"deploymentType": "SCRATCH_1"}, (1200, 2400, 3600, 7200), True),
        ({"deploymentType": "SCRATCH_1"}, (4800,), False),
        ({"deploymentType": "SCRATCH_2"}, (1200, 2400, 4800), True),
        ({"deploymentType": "SCRATCH_2"}, (0, 100, 3600), False),
        ({"storageType": "HDD", "perUnitStorageThroughput": 12}, (6000, 12000), True),
        ({"storageType": "HDD", "perUnitStorageThroughput": 40}, (1800, 3600), True),
        ({"storageType": "HDD", "perUnitStorageThroughput": 40}, (1200, 2400), False),
        ({"storageType": "INTELLIGENT_TIERING"}, (1,), True),
        ({"deploymentType": UNKNOWN}, (1,), True),
    ],
)
def test_lustre_sizes_go_by_deployment_and_storage_type(
    kind: dict[str, Any], sizes: tuple[int, ...], good: bool
) -> None:
    settings: dict[str, Any] = {"deploymentType": "PERSISTENT_1", **kind}
    for size in sizes:
        row = resource(LUSTRE_FILE_SYSTEM, storageCapacity=size, **settings)
        assert bool(verdict("fsx-storage-capacity", row)) != good, size


@pytest.mark.parametrize("gateway", ["igw-0123456789abcdef0", UNKNOWN])
def test_a_public_route_table_needs_no_s3_endpoint(gateway: object) -> None:
    inline = resource(ROUTE_TABLE, routes=[{"cidrBlock": "0.0.0.0/0", "gatewayId": gateway}])
    assert not verdict("s3-gateway-endpoint", inline)
    separate = [
        resource(INTERNET_GATEWAY, "internet"),
        resource(ROUTE_TABLE, "table"),
        resource(
            ROUTE,
            "out",
            links={"routeTableId": ["table"], "gatewayId": ["internet"]},
            gatewayId=gateway,
        ),
    ]
    assert not verdict("s3-gateway-endpoint", *separate)
