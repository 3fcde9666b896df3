"""`python -m rehearsal`: what is printed where, and with which exit status."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from rehearsal import Problem, Rehearsal, Resource, rehearse
from rehearsal.__main__ import main
from rehearsal.progress import progress
from rehearsal.report import print_report, short_type
from rehearsal.run import REPOSITORY
from tests.unit.toy_project import write_project

PROGRAM = """
    import pulumi, pulumi_aws as aws
    print("noise")
    pulumi.log.warn("mind the gap")
    vpc = aws.ec2.Vpc("v", cidr_block="10.0.0.0/16")
    aws.ec2.NatGateway("way-out", subnet_id="subnet-0", opts=pulumi.ResourceOptions(parent=vpc))
    pulumi.export("vpc", vpc.id)
"""


@pytest.fixture(autouse=True)
def _collector_stays_on() -> Iterator[None]:
    """`main` switches the garbage collector off for the process that it usually ends."""
    import gc

    yield
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path, PROGRAM)


def test_json_is_one_object_and_nothing_else_on_stdout(project: Path) -> None:
    nothing = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-m", "rehearsal", "dev", "--json", "--project", str(project)],
        cwd=REPOSITORY,
        env=nothing | {"AWS_CONFIG_FILE": os.devnull, "HOME": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert list(answer) == [
        "stack",
        "errors",
        "warnings",
        "resources",
        "outputs",
        "findings",
        "price",
        "ready",
    ]
    assert answer["stack"] == "dev"
    assert answer["errors"] == answer["findings"] == []
    assert answer["warnings"][0]["reason"] == "mind the gap"
    assert {"idlePerHour", "fullPerHour", "lines"} <= set(answer["price"])
    assert {"seconds", "criticalPath"} <= set(answer["ready"])
    assert "noise" in done.stderr


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_error_is_reported_with_exit_status_1(
    project: Path, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dve", "--project", str(project), *flags]) == 1
    assert "did you mean dev?" in capsys.readouterr().out


def test_the_report_says_what_a_person_wants_to_know(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dev", "--project", str(project)]) == 0
    out = capsys.readouterr().out
    assert "dev in us-west-2" in out
    assert "ec2.Vpc v 10.0.0.0/16\n└── ec2.NatGateway way-out" in out
    assert "2 resources" in out
    assert "idle  full size  USD per hour" in out
    assert "min  until ready" in out
    assert "1 warning\nmind the gap" in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 100


def text_of(rehearsal: Rehearsal) -> str:
    out = io.StringIO()
    print_report(rehearsal, Console(file=out, width=100))
    return out.getvalue()


def test_an_error_is_one_line_however_long() -> None:
    problem = Problem(key="toy:a[0].b", value=0, reason="is not " + "x" * 200, fix="do [it]")
    assert f"\ntoy:a[0].b: 0 is not {'x' * 200}; do [it]\n" in text_of(
        Rehearsal(stack="dev", errors=(problem,))
    )


def test_an_unknown_price_is_shown_as_a_lower_bound() -> None:
    line = {"urn": "a::b", "what": "disk", "idlePerHour": 0.0, "fullPerHour": None, "note": ""}
    price = {"idlePerHour": 1.5, "fullPerHour": None, "knownFullPerHour": 2.0, "lines": [line]}
    text = text_of(Rehearsal(stack="dev", price=price))
    assert " unknown  b: disk" in text
    assert "1.50  at least 2.00  in all" in text


def group(number: int) -> Resource:
    return Resource(
        urn=f"urn:{number}",
        type="toy:index:Group",
        name=f"g{number}",
        parent=None,
        inputs={},
        dependencies=(),
        property_dependencies={},
        protect=False,
        retain_on_delete=False,
    )


def test_a_thousand_groups_are_folded() -> None:
    text = text_of(Rehearsal(stack="dev", resources=tuple(map(group, range(1000)))))
    assert "and 997 more Group" in text
    assert "\n 1000  Group" in text
    assert len(text.splitlines()) < 20


def test_equal_interfaces_are_counted(tmp_path: Path) -> None:
    program = """
        import pulumi_aws as aws
        kinds = ["interface", "efa-only", "efa-only"]
        aws.ec2.LaunchTemplate("t", network_interfaces=[{"interface_type": k} for k in kinds])
    """
    rehearsal = rehearse("dev", project=write_project(tmp_path, program))
    assert "LaunchTemplate t interface, 2 x efa-only" in text_of(rehearsal)


@pytest.mark.parametrize(
    ("token", "short"),
    [
        ("aws:ec2/vpc:Vpc", "ec2.Vpc"),
        ("trainyard:index:Network", "Network"),
        ("pulumi:providers:aws", "aws"),
        ("kubernetes:core/v1:Secret", "core.Secret"),
    ],
)
def test_types_are_shown_in_short(token: str, short: str) -> None:
    assert short_type(token) == short


@pytest.mark.parametrize(("seconds", "said"), [(0.0, ""), (0.2, "rehearsing dev ...\n")])
def test_progress_speaks_only_when_it_takes_long(
    seconds: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("rehearsing dev", patience_seconds=0.1):
        time.sleep(seconds)
    assert capsys.readouterr().err == said
