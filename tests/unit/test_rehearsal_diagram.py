"""The picture of a stack."""

from pathlib import Path

import pytest

from rehearsal import rehearse
from rehearsal.diagram import BEGIN, END, flowchart, main, with_diagram
from tests.unit.toy_project import write_project

PROGRAM = """
    import pulumi, pulumi_aws as aws

    class Group(pulumi.ComponentResource):
        def __init__(self, name, vpc, subnets):
            super().__init__("toy:index:Group", name)
            own = pulumi.ResourceOptions(parent=self)
            role = aws.iam.Role(f"{name}-role", assume_role_policy="{}", opts=own)
            lt = aws.ec2.LaunchTemplate(f"{name}-lt", user_data=role.arn, opts=own)
            ce = aws.batch.ComputeEnvironment(
                f"{name}-ce",
                type="MANAGED",
                compute_resources={
                    "type": "EC2",
                    "max_vcpus": 1,
                    "subnets": [subnet.id for subnet in subnets],
                    "launch_template": {"launch_template_id": lt.id},
                },
                tags={"vpc": vpc.id},
                opts=own,
            )

    vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")
    subnets = [aws.ec2.Subnet(f"net-{z}", vpc_id=vpc.id) for z in "abcd"]
    for number in range(pulumi.Config().require_int("groups")):
        Group(f"g{number}", vpc, subnets)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path, PROGRAM, config={"toy:groups": 1})


def test_components_are_boxes_and_arrows_lead_to_what_is_used(project: Path) -> None:
    assert flowchart(rehearse("dev", project=project).resources).splitlines() == [
        "flowchart LR",
        '  n0["4 x subnet"]',
        '  n1["VPC<br/>net"]',
        '  subgraph s0["Group g0"]',
        '    n2["compute environment<br/>g0-ce"]',
        '    n3["launch template<br/>g0-lt"]',
        "  end",
        "  n0 --> n1",
        "  n2 --> n3",
        "  n2 --> n0",
    ]


def test_many_components_alike_are_counted(project: Path) -> None:
    rehearsal = rehearse("dev", project=project, config_overrides={"toy:groups": 9})
    drawn = flowchart(rehearsal.resources)
    assert drawn.count("subgraph") == 3
    assert 'more0["and 6 more Group"]' in drawn


def test_a_page_is_updated_between_its_markers_and_then_up_to_date(project: Path) -> None:
    page = project / "README.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    stack = ["dev", "--project", str(project), "--update", str(page)]
    assert main([*stack, "--check"]) == 1
    assert "old" in page.read_text()
    assert main(stack) == 0
    assert main([*stack, "--check"]) == 0
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n```mermaid\nflowchart LR\n")
    assert text.endswith(f"  n2 --> n0\n```\n{END}\nafter\n")


@pytest.mark.parametrize("page", ["", BEGIN, END + BEGIN, BEGIN + END + BEGIN + END])
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        with_diagram(page, "flowchart LR")


def test_a_stack_with_errors_has_no_picture(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dve", "--project", str(project)]) == 1
    assert "did you mean dev?" in capsys.readouterr().err
