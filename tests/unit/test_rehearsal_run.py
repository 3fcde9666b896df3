"""Running a program: what is recorded, in which form, and what is said when it fails."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rehearsal import Rehearsal, rehearse
from tests.unit.toy_project import write_project

NETWORK = """
    import pulumi
    import pulumi_aws as aws

    class Network(pulumi.ComponentResource):
        def __init__(self, name):
            super().__init__("toy:index:Network", name)
            own = pulumi.ResourceOptions(parent=self)
            self.vpc = aws.ec2.Vpc(f"{name}-vpc", cidr_block="10.0.0.0/16", opts=own)
            self.subnet = aws.ec2.Subnet(
                f"{name}-a", vpc_id=self.vpc.id, cidr_block="10.0.0.0/20", opts=own
            )
            self.template = aws.ec2.LaunchTemplate(f"{name}-lt", opts=own)
            self.register_outputs({})

    net = Network("net")
    aws.batch.JobQueue(
        "queue",
        state="ENABLED",
        priority=1,
        compute_environment_orders=[{"order": 1, "compute_environment": net.vpc.arn}],
        tags={"version": net.template.latest_version.apply(lambda v: f"{v + 1}")},
        opts=pulumi.ResourceOptions(protect=True, retain_on_delete=True, depends_on=[net.subnet]),
    )
    pulumi.export("vpc", net.vpc.id)
"""

VPC = "urn:pulumi:dev::toy::toy:index:Network$aws:ec2/vpc:Vpc::net-vpc"
SUBNET = "urn:pulumi:dev::toy::toy:index:Network$aws:ec2/subnet:Subnet::net-a"
TEMPLATE = "urn:pulumi:dev::toy::toy:index:Network$aws:ec2/launchTemplate:LaunchTemplate::net-lt"

Run = Callable[..., Rehearsal]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def write_and_rehearse(program: str, **files: Any) -> Rehearsal:
        return rehearse("dev", project=write_project(tmp_path, program, **files))

    return write_and_rehearse


def test_urns_carry_the_types_of_all_components_above(run: Run) -> None:
    assert [row.urn for row in run(NETWORK).resources] == [
        "urn:pulumi:dev::toy::aws:batch/jobQueue:JobQueue::queue",
        "urn:pulumi:dev::toy::toy:index:Network::net",
        TEMPLATE,
        SUBNET,
        VPC,
    ]


def test_a_row_holds_what_an_engine_would_receive(run: Run) -> None:
    rehearsal = run(NETWORK)
    queue = rehearsal.resources[0].to_json()
    assert queue == {
        "urn": "urn:pulumi:dev::toy::aws:batch/jobQueue:JobQueue::queue",
        "type": "aws:batch/jobQueue:JobQueue",
        "name": "queue",
        "parent": None,
        "inputs": {
            "state": "ENABLED",
            "priority": 1,
            "computeEnvironmentOrders": [
                {
                    "order": 1,
                    "computeEnvironment": (
                        f"arn:aws:ec2:us-west-2:123456789012:vpc/{rehearsal.outputs['vpc']}"
                    ),
                }
            ],
            "tags": {"version": "2"},
        },
        "dependencies": [TEMPLATE, SUBNET, VPC],
        "propertyDependencies": {"computeEnvironmentOrders": [VPC], "tags": [TEMPLATE]},
        "protect": True,
        "retainOnDelete": True,
    }
    assert type(queue["inputs"]["priority"]) is int


def test_the_parent_is_a_urn(run: Run) -> None:
    parents = {row.name: row.parent for row in run(NETWORK).resources}
    assert parents["net-vpc"] == "urn:pulumi:dev::toy::toy:index:Network::net"
    assert parents["net"] is None


def test_forty_runs_in_one_process_are_equal_and_clean(tmp_path: Path) -> None:
    project = write_project(tmp_path, NETWORK)
    first = rehearse("dev", project=project)
    assert not first.errors
    assert all(rehearse("dev", project=project) == first for _ in range(40))


def test_secrets_stay_secret(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi, pulumi_aws as aws
        secret = pulumi.Config().require_secret("word")
        aws.ssm.Parameter("p", type="SecureString", value=secret.apply(lambda _: "hunter2"))
        aws.ssm.Parameter("q", type="SecureString", value=pulumi.Output.secret("hunter2"))
        pulumi.export("it", secret)
        """,
        config={"toy:word": {"secure": "v1:cipher"}},
    )
    assert [row.inputs["value"] for row in rehearsal.resources] == ["[secret]", "[secret]"]
    assert rehearsal.outputs == {"it": "[secret]"}


def test_a_resource_as_an_input_is_its_id(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi, pulumi_aws as aws
        vpc = aws.ec2.Vpc("v", cidr_block="10.0.0.0/16")
        class Box(pulumi.ComponentResource):
            def __init__(self, name, props):
                super().__init__("toy:index:Box", name, props, remote=True)
        Box("b", {"vpc": vpc})
        pulumi.export("id", vpc.id)
        """
    )
    box = next(row for row in rehearsal.resources if row.name == "b")
    assert box.inputs == {"vpc": rehearsal.outputs["id"]}


def test_an_archive_keeps_its_path(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi, pulumi_aws as aws
        aws.lambda_.Function("f", role="r", code=pulumi.FileArchive("./src"))
        """
    )
    assert rehearsal.resources[0].inputs["code"]["archive"]["path"] == "./src"


@pytest.mark.parametrize("kept", ["pulumi.export('x', failing)", "None"])
def test_an_exception_inside_an_apply_is_an_error(run: Run, kept: str) -> None:
    rehearsal = run(
        f"""
        import pulumi, pulumi_aws as aws
        def fail(_):
            raise RuntimeError("too far")
        failing = aws.ec2.Vpc("v", cidr_block="10.0.0.0/16").id.apply(fail)
        {kept}
        """
    )
    (error,) = rehearsal.errors
    assert (error.key, error.value) == ("program", "RuntimeError")
    assert error.reason.startswith("too far")
    assert rehearsal.failed


def test_an_exception_inside_an_apply_tells_its_line(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi_aws as aws
        aws.ec2.Vpc("v", cidr_block="10.0.0.0/16").id.apply(lambda _: 1 / 0)
        """
    )
    assert [error.to_json() for error in rehearsal.errors] == [
        {
            "key": "program",
            "value": "ZeroDivisionError",
            "reason": "division by zero (__main__.py:3)",
            "fix": "correct the program at that line",
        }
    ]


def test_two_resources_of_one_name_are_an_error_as_in_the_engine(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi_aws as aws
        aws.ec2.Vpc("v", cidr_block="10.0.0.0/16")
        aws.ec2.Vpc("v", cidr_block="10.1.0.0/16")
        """
    )
    (error,) = rehearsal.errors
    assert error.value == "urn:pulumi:dev::toy::aws:ec2/vpc:Vpc::v"
    assert error.reason == "is a duplicate resource URN"


@pytest.mark.parametrize(
    "call", ["aws.ec2.get_key_pair(key_name='x')", "aws.ec2.get_key_pair_output(key_name='x')"]
)
def test_a_look_up_without_an_answer_is_named(run: Run, call: str) -> None:
    (error,) = run(f"import pulumi_aws as aws; {call}").errors
    assert error.value == "aws:ec2/getKeyPair:getKeyPair"


def test_the_problems_of_a_settings_error_are_the_errors(run: Run) -> None:
    rehearsal = run(
        """
        from dataclasses import dataclass
        import pulumi
        @dataclass
        class Problem:
            key: str
            value: object
            reason: str
            fix: str
        class SettingsError(Exception):
            problems = (
                Problem("toy:a.b", 0, "is too small", "write 1"),
                Problem("toy:c", None, "is required", "add it"),
            )
        try:
            raise SettingsError("both")
        except SettingsError as error:
            raise pulumi.RunError("both") from error
        """
    )
    assert [str(error) for error in rehearsal.errors] == [
        "toy:a.b: 0 is too small; write 1",
        "toy:c: is required; add it",
    ]
    assert rehearsal.resources == ()


@pytest.mark.parametrize(
    ("program", "value", "reason"),
    [
        ("1 / 0", "ZeroDivisionError", "division by zero (__main__.py:1)"),
        ("x = = 1", "SyntaxError", "invalid syntax (__main__.py, line 1) (__main__.py:1)"),
        ("import sys; sys.exit(3)", "SystemExit", "3 (__main__.py:1)"),
    ],
)
def test_any_other_exception_is_one_error_with_its_line(
    run: Run, program: str, value: str, reason: str
) -> None:
    assert [(e.key, e.value, e.reason) for e in run(program).errors] == [("program", value, reason)]


def test_a_logged_error_fails_the_rehearsal_as_it_fails_an_update(run: Run) -> None:
    assert [e.reason for e in run("import pulumi; pulumi.log.error('no good')").errors] == [
        "no good"
    ]


def test_a_warning_has_the_structure_that_the_programs_stack_gives_it(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi
        from types import SimpleNamespace
        class Warning(SimpleNamespace):
            def __str__(self):
                return f"{self.key}: {self.reason}"
        stack = SimpleNamespace(warnings=[Warning(key="toy:a", value=7, reason="odd", fix="drop")])
        pulumi.log.warn(str(stack.warnings[0]))
        pulumi.log.warn("something else")
        """
    )
    assert [warning.to_json() for warning in rehearsal.warnings] == [
        {"key": "toy:a", "value": 7, "reason": "odd", "fix": "drop"},
        {"key": None, "value": None, "reason": "something else", "fix": None},
    ]


@pytest.mark.filterwarnings("ignore:is_enabled is deprecated")
def test_a_deprecation_of_the_sdk_is_a_warning(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi_aws as aws
        rule = aws.cloudwatch.EventRuleArgs(schedule_expression="rate(1 day)", is_enabled=False)
        aws.cloudwatch.EventRule("r", rule)
        """
    )
    assert "deprecated" in rehearsal.warnings[0].reason


def test_a_transform_is_refused_because_its_effect_would_be_missing(run: Run) -> None:
    (error,) = run(
        """
        import pulumi
        pulumi.runtime.register_resource_transform(lambda args: None)
        """
    ).errors
    assert "transform" in error.reason


def test_what_is_read_is_marked_and_not_priced(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi, pulumi_aws as aws
        gateway = aws.ec2.NatGateway.get("there", "nat-0123")
        pulumi.export("id", gateway.id)
        """
    )
    assert rehearsal.resources[0].to_json()["external"] is True
    assert rehearsal.price["lines"] == []
    assert rehearsal.outputs == {"id": "nat-0123"}


def test_another_region_of_a_provider_shows_in_arns(run: Run) -> None:
    rehearsal = run(
        """
        import pulumi, pulumi_aws as aws
        there = aws.Provider("there", region="eu-west-1")
        other = pulumi.ResourceOptions(provider=there)
        pulumi.export("topic", aws.sns.Topic("t", name="t", opts=other).arn)
        pulumi.export("region", aws.get_region(opts=pulumi.InvokeOptions(provider=there)).region)
        """
    )
    assert rehearsal.outputs == {
        "topic": "arn:aws:sns:eu-west-1:123456789012:t",
        "region": "eu-west-1",
    }


def test_each_project_sees_its_own_modules(tmp_path: Path) -> None:
    program = "import pulumi, settings; pulumi.export('who', settings.WHO)"
    for who in ("first", "second"):
        (tmp_path / who).mkdir()
        project = write_project(tmp_path / who, program)
        (project / "settings.py").write_text(f"WHO = {who!r}")
        assert rehearse("dev", project=project).outputs == {"who": who}


def test_the_process_is_left_as_it_was(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.getcwd(), sys.path[:], sys.argv[:], set(sys.modules) & {"__main__", "settings"}
    (tmp_path / "settings.py").write_text("")
    rehearsal = run("import os, settings; assert os.path.exists('Pulumi.yaml'); print('hello')")
    assert not rehearsal.errors
    after = os.getcwd(), sys.path[:], sys.argv[:], set(sys.modules) & {"__main__", "settings"}
    assert after == before
    assert capsys.readouterr().out == ""


def test_no_connection_is_opened(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert not run(NETWORK).errors


def test_findings_come_from_the_judge_and_a_mandatory_one_fails(tmp_path: Path) -> None:
    finding = {"rule": "r", "level": "mandatory", "message": "no", "fix": "yes"}
    project = write_project(tmp_path, NETWORK)
    rehearsal = rehearse("dev", project=project, judge=lambda rows: [finding] * (len(rows) == 5))
    assert rehearsal.findings == [finding]
    assert rehearsal.failed
