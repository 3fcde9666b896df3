"""Our server against Pulumi's own: the same policies must get the same answers from both."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy.policy import _PolicyAnalyzerServicer  # pyright: ignore[reportPrivateUsage]

from policy.analyzer import PACK_NAME, SDK_VERSION, Analyzer
from policy.catalogue import RULES
from policy.client import resource_request, stack_request
from policy.configuration import read_configuration
from policy.examples import resource
from policy.rule import Finding, Option, Rule, Subject
from policy.sdk_policies import sdk_policy, violation_line
from policy.values import UNKNOWN
from policy.wire import SECRET, SIGNATURE
from tests.policy.mutations import Rows
from tests.policy.stacks import PROGRAMS, in_preview, rows_of

BUCKET = "aws:s3/bucket:Bucket"
ASSET_MARK = "c44067f5952c0a294b673a41bacd8c17"
Diagnostic = tuple[Any, ...]
Server = Any  # the SDK's class has no types


def stock(*rules: Rule) -> Server:
    """The server that `PolicyPack` starts."""
    return _PolicyAnalyzerServicer(
        PACK_NAME, SDK_VERSION, [sdk_policy(rule) for rule in rules], EnforcementLevel.ADVISORY
    )


@cache
def both() -> tuple[Server, Server]:
    return stock(*RULES), Analyzer(RULES)


def answers(server: Server, rows: Rows) -> list[Diagnostic]:
    """Everything that a server says of a program, in its order."""
    one_by_one = [server.Analyze(resource_request(row), None) for row in rows]
    together = server.AnalyzeStack(stack_request(rows), None)
    return [
        (position, each.policyName, each.enforcementLevel, each.urn, each.message, each.severity)
        for position, response in enumerate([*one_by_one, together])
        for each in response.diagnostics
    ]


def messages(server: Server, *rows: dict[str, Any]) -> list[str]:
    """The second line of each diagnostic: the first one is the rule's sentence."""
    return [answer[4].partition("\n")[2] for answer in answers(server, list(rows))]


def configure(server: Server, text: str) -> None:
    configuration = read_configuration(text, server.GetAnalyzerInfo(None, None).policies)
    server.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=configuration), None)


def rule_that(check: Any, **more: Any) -> Rule:
    about: dict[str, Any] = {
        "id": "a-rule",
        "references": (),
        "family": "security",
        "level": "mandatory",
        "level_because": "a test wants it",
        "sentence": "Something holds.",
        "why": "It is a test.",
        "fix": "make it hold",
        "url": "https://example.com/rule",
        "types": frozenset({BUCKET}),
        "check": check,
        "good": [],
        "bad": [],
    }
    return Rule(**(about | more))


def finds_bucket(subject: Subject) -> Iterator[Finding]:
    yield Finding(path="bucket", value=subject.at("bucket"), message="it is a bucket")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("phase", ["update", "preview"])
def test_a_stock_pack_says_the_same_of_a_program(program: str, phase: str) -> None:
    theirs, ours = both()
    rows = in_preview(rows_of(program)) if phase == "preview" else rows_of(program)
    assert answers(ours, rows) == answers(theirs, rows)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("phase", ["update", "preview"])
def test_a_stock_pack_says_the_same_of_a_broken_program(rule: Rule, phase: str) -> None:
    theirs, ours = both()
    rows = [dict(row) for row in rule.bad]
    said = answers(ours, in_preview(rows) if phase == "preview" else rows)
    assert said == answers(theirs, in_preview(rows) if phase == "preview" else rows)
    if phase == "update" or rule.decides_in_preview:
        assert rule.id in {answer[1] for answer in said}


@pytest.mark.parametrize("level", ["advisory", "mandatory", "remediate", "disabled"])
def test_a_stock_pack_says_the_same_at_each_configured_level(level: str) -> None:
    servers: list[Server] = [stock(*RULES), Analyzer(RULES)]
    theirs, ours = servers
    for server in servers:
        configure(server, f'{{"all": "{level}"}}')
    for rule in RULES[::5]:  # a few of all families
        rows = [dict(row) for row in rule.bad]
        assert answers(ours, rows) == answers(theirs, rows)
        assert bool(answers(ours, rows)) == (level != "disabled")
    request = resource_request(resource(BUCKET))
    assert ours.Remediate(request, None) == theirs.Remediate(request, None)


def test_a_rule_takes_its_options_from_the_configuration() -> None:
    def says_limit(subject: Subject) -> Iterator[Finding]:
        yield Finding(path="", value=None, message=f"the limit is {subject.options['limit']}")

    limit = Option(kind="integer", default=2, description="so many")
    for whole_program in (False, True):
        rule = rule_that(says_limit, options={"limit": limit}, whole_program=whole_program)
        for server in (stock(rule), Analyzer([rule])):
            assert "the limit is 2;" in messages(server, resource(BUCKET))[0]
            configure(server, '{"a-rule": {"limit": 7}}')
            assert "the limit is 7;" in messages(server, resource(BUCKET))[0]


def test_a_policy_carries_all_that_a_rule_says_of_itself() -> None:
    option = Option(kind="number", default=1.5, description="how much")
    rule = rule_that(finds_bucket, options={"most": option}, references=("R07",))
    server: Server = Analyzer([rule])
    (info,) = server.GetAnalyzerInfo(None, None).policies
    assert (info.name, info.description) == ("a-rule", "Something holds.")
    assert (info.remediation_steps, info.url) == ("make it hold", "https://example.com/rule")
    assert info.enforcementLevel == analyzer_pb2.MANDATORY
    assert info.policy_type == analyzer_pb2.POLICY_TYPE_RESOURCE
    assert list(info.tags) == ["security", "R07", "decides-in-preview"]
    assert json_format.MessageToDict(info.configSchema.properties)["most"] == {
        "type": "number",
        "default": 1.5,
        "description": "how much",
    }


def test_a_violation_is_one_line_with_place_value_reason_and_fix() -> None:
    (said,) = messages(Analyzer([rule_that(finds_bucket)]), resource(BUCKET, "logs", bucket="b\nc"))
    assert said == (
        'logs: bucket is "b\\nc": it is a bucket; make it hold (https://example.com/rule)'
    )


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (Finding(path="a[0].b", value=3, message="odd"), "it: a[0].b is 3: odd; "),
        (Finding(path="a", value=None, message="odd"), "it: a: odd; "),
        (Finding(path="", value=None, message="odd"), "it: odd; "),
        (Finding(path="a", value=UNKNOWN, message="odd"), "it: a is [unknown]: odd; "),
        (Finding(path="a", value=["x" * 100], message="odd"), f'it: a is ["{"x" * 77}…: odd; '),
    ],
)
def test_a_line_shows_values_briefly(finding: Finding, said: str) -> None:
    assert violation_line(rule_that(finds_bucket), resource(BUCKET), finding).startswith(said)


def test_a_rule_is_asked_only_about_its_types() -> None:
    other = resource("aws:ec2/vpc:Vpc", bucket="no")
    for whole_program in (False, True):
        rule = rule_that(finds_bucket, whole_program=whole_program)
        assert messages(Analyzer([rule]), other) == []
        assert messages(stock(rule), other) == []


def test_a_count_arrives_as_an_integer_and_an_unknown_value_as_unknown() -> None:
    def shows(subject: Subject) -> Iterator[Finding]:
        yield Finding(path="x", value=None, message=repr(dict(subject.inputs)))

    sent = in_preview([resource(BUCKET, count=3, share=0.5, arn=UNKNOWN, none=None, on=True)])
    said = "{'count': 3, 'share': 0.5, 'arn': [unknown], 'none': None, 'on': True}"
    for server in (stock(rule_that(shows)), Analyzer([rule_that(shows)])):
        (message,) = messages(server, *sent)
        for part in said.strip("{}").split(", "):
            assert part in message


def test_a_file_among_the_inputs_does_not_matter() -> None:
    def shows(subject: Subject) -> Iterator[Finding]:
        yield Finding(path="source", value=subject.at("source"), message="is there")

    sent = resource(BUCKET, source={SIGNATURE: ASSET_MARK, "text": "hello", "hash": "0"})
    for server in (stock(rule_that(shows)), Analyzer([rule_that(shows)])):
        assert 'source is {"asset": {}}' in messages(server, sent)[0]


def test_a_mark_of_a_later_engine_is_an_unknown_value() -> None:
    sent = resource(BUCKET, bucket={SIGNATURE: "a mark that no SDK knows", "id": "b"})
    assert "bucket is [unknown]" in messages(Analyzer([rule_that(finds_bucket)]), sent)[0]


# --- secrets and failures, where ours is better ---------------------------------------------------


def secret(value: Any) -> dict[str, Any]:
    return {SIGNATURE: SECRET, "value": value}


@pytest.mark.parametrize(
    ("path", "inputs"),
    [
        ("bucket", {"bucket": secret("hunter2-hunter2")}),
        ("bucket.name[0]", {"bucket": secret({"name": ["hunter2-hunter2"]})}),
        ("bucket", {"bucket": {"name": [secret("hunter2-hunter2")]}}),
    ],
)
def test_a_secret_value_is_judged_but_not_shown(path: str, inputs: dict[str, Any]) -> None:
    def shows(subject: Subject) -> Iterator[Finding]:
        assert "hunter2-hunter2" in str(dict(subject.inputs))
        yield Finding(path=path, value="hunter2-hunter2", message="it starts with hunter2")

    for whole_program in (False, True):
        rule = rule_that(shows, whole_program=whole_program)
        (message,) = messages(Analyzer([rule]), resource(BUCKET, **inputs))
        assert f'it: {path} is "[secret]": Something holds.; make it hold' in message
        assert "hunter2" not in message


def test_a_secret_is_blotted_out_of_what_is_said_about_another_resource() -> None:
    def shows_all(subject: Subject) -> Iterator[Finding]:
        names = [each["inputs"]["bucket"] for each in subject.program.of_type(BUCKET)]
        yield Finding(path="tags", value=None, message=f"the buckets are {names}")

    rule = rule_that(shows_all, whole_program=True)
    other = resource(BUCKET, "other", bucket=secret("hunter2-hunter2"))
    said = messages(Analyzer([rule]), resource(BUCKET, "this", bucket="plain"), other)
    assert len(said) == 2
    assert all("hunter2" not in line and "'plain'" in line for line in said)


def test_a_value_beside_a_secret_is_shown() -> None:
    sent = resource(BUCKET, bucket="mine", bucketPrefix=secret("hunter2"))
    assert 'bucket is "mine"' in messages(Analyzer([rule_that(finds_bucket)]), sent)[0]


@pytest.mark.parametrize("whole_program", [False, True])
def test_a_rule_that_fails_is_reported_and_the_others_go_on(whole_program: bool) -> None:
    def fails(subject: Subject) -> Iterator[Finding]:
        raise ValueError(f"no such thing as {subject.at('bucket')}")

    bad = rule_that(fails, id="bad-rule", whole_program=whole_program)
    good = rule_that(finds_bucket, whole_program=whole_program)
    failed, found = answers(Analyzer([bad, good]), [resource(BUCKET, bucket="hunter2")])
    assert failed[1:3] == ("bad-rule", analyzer_pb2.ADVISORY)
    assert "bad-rule could not judge it (ValueError at " in failed[4]
    assert "test_sdk_policies.py:" in failed[4]
    assert "hunter2" not in failed[4]  # it might be a secret
    assert found[1:3] == ("a-rule", analyzer_pb2.MANDATORY)
