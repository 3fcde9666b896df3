"""What the pages say is there, and what is there is on the pages."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fabric.prices import NOT_COUNTED
from rehearsal.model import Rehearsal
from rehearsal.report import print_report
from rehearsal.run import rehearse
from settings import reference

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
TEMPLATES = (ROOT / "docs/coming-from-templates.md").read_text(encoding="utf-8")
INTERFACES = (ROOT / "docs/interfaces.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

# Parameters, resources and outputs, as the templates name them at commit 7217859f of
# https://github.com/aws-samples/awsome-distributed-training/tree/main/1.architectures; of the p5
# and p6 templates only what the first one lacks, and of p6 also what an earlier version had.
NAMES_IN_TEMPLATES: Mapping[str, str] = {
    "0.aws-batch-distributed-training.yaml": """
        VPCStackParameter AMI CapacityReservationId CapacityReservationResourceGroup EC2KeyPair
        CreatePlacementGroup
        DistributedDeepLearningLT ClusterPlacementGroup BatchInstanceRole ECSTaskServiceRole
        ECSTaskInstanceProfile DistributedDeepLearningCE DistributedDeepLearningJQ
        DistributedDeepLearningRepository StressJDSingleInstance StressJDMultiInstances
        ECRRepository ECRRepositoryUrl JobDefinitionSingleInstance JobDefinitionMultiInstance""",
    "2.vpc-one-az.yaml": """
        VPCName SubnetsAZ CreateS3Endpoint CreateDynamoDBEndpoint
        VPC VpcCidrBlock FlowLogsRole FlowLogsGroup FlowLogVPC InternetGateway GatewayToInternet
        NATGateway ElasticIP SecurityGroup EFASecurityGroupIngress EFASecurityGroupEgress
        EFASecurityGroupEgressECS FSXSecurityGroup PublicSubnet PrivateSubnet PublicRouteTable
        PublicRoute PrivateRouteTable PrivateRouteToInternet PublicSubnetRouteTableAssociation
        PrivateSubnetRTAssociation S3Endpoint DynamoDBEndpoint""",
    "0.aws-batch-distributed-training-p5.yaml": "CapacityBlockId NCCLTestRepository NCCLTest",
    "aws-batch-distributed-training-p6.yaml": """
        CapacityReservationId CapacityBlockId PlacementGroupName
        CapacityReservationResourceGroup BatchSSHKeyPair SSHKeySecret NCCLTest NCCLTestRepository
        CapacityReservationResourceGroupArn SSHKeyPairId SSHKeySecretArn""",
}


@pytest.fixture(scope="module")
def dev() -> Rehearsal:
    return rehearse("dev")


def chapter(page: str, heading: str) -> str:
    """What stands between a heading of the second level and the next one."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> dict[str, str]:
    """The tables of a text: first cell, without backticks, to the rest of its row."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = (line.strip("| ").split(" | ", maxsplit=1) for line in lines)
    return {first.strip("`"): rest for first, rest in cells}


def in_backticks(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


# --- links and commands -------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    relative = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in relative if not (page.parent / target).exists()] == []


def test_every_anchor_of_the_settings_is_a_heading() -> None:
    headings = re.findall(r"^#+ (.+)$", SETTINGS, re.MULTILINE)
    anchors = {re.sub(r"[^\w-]", "", heading.lower()) for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", SETTINGS)) <= anchors


def test_the_readme_names_the_make_targets_that_there_are() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE)) == targets


def test_every_example_is_in_the_readmes_table() -> None:
    linked = re.findall(r"\| \[([\w-]+)\]\(examples/([\w-]+)\.yaml\)", README)
    assert sorted(linked) == sorted((path.stem, path.stem) for path in EXAMPLES)


# --- what the readme shows ----------------------------------------------------------------------


def test_the_excerpt_of_the_preview_is_what_it_prints(dev: Rehearsal) -> None:
    printed = io.StringIO()
    print_report(dev, Console(file=printed, width=100))
    excerpt = re.findall(r"```text\n(dev in .*?)```", README, re.DOTALL)[0]

    def words(text: str) -> list[str]:
        return [" ".join(line.strip("│├└─ ").split()) for line in text.splitlines()]

    assert [line for line in words(excerpt) if line not in words(printed.getvalue())] == []


def test_the_readme_lists_what_prices_leave_out() -> None:
    listed = re.findall(r"^- (.+)$", chapter(README, "Costs").partition("Not counted:")[2], re.M)
    assert tuple(listed) == NOT_COUNTED


def test_every_exit_status_of_the_job_script_is_explained() -> None:
    script = (ROOT / "fabric/job_scripts/torchrun.sh").read_text(encoding="ascii")
    statuses = set(re.findall(r"\b(?:fail|exit) (\d+)", script))
    assert statuses
    explained = " ".join(rows(chapter(README, "When something is wrong")))
    assert statuses <= set(re.findall(r"(?:with|\.\.\.) (\d+)", explained))


# --- settings -----------------------------------------------------------------------------------


def test_the_page_of_settings_is_current() -> None:
    assert reference.page() == SETTINGS, "python -m settings.reference --write docs/settings.md"


def test_writing_the_page_makes_the_check_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "settings.md"
    page.write_text("# Settings of last year\n")
    assert reference.main(["--check", str(page)]) == 1
    assert "out of date" in capsys.readouterr().err
    assert reference.main(["--write", str(page)]) == 0
    assert reference.main(["--check", str(page)]) == 0


def test_a_key_shows_its_type_limits_default_and_meaning() -> None:
    groups = SETTINGS.partition("### batch.groups[]\n")[2].partition("\n### ")[0]
    assert rows(groups)["rootVolumeGib"].startswith("whole number from 30 to 16384 | `200` | Size")
    assert rows(groups)["name"].startswith("text | required | ")


def test_pages_name_only_settings_that_there_are() -> None:
    named = {
        text
        for page in PAGES
        for text in in_backticks(page.read_text(encoding="utf-8"))
        if re.fullmatch(r"(common|network|placement|batch)(\.([a-z]\w*|NAME)(\[\])?)+", text)
    }
    outputs = set(rows(INTERFACES))
    assert named
    assert named - set(setting_paths()) - outputs == set()


def setting_paths() -> Iterator[str]:
    """Every path of the page of settings, such as `batch.groups[].jobs[].kind`."""
    for heading, body in re.findall(
        r"^##+ (?:trainyard:)?(\S+)\n(.*?)(?=^##|\Z)", SETTINGS, re.MULTILINE | re.DOTALL
    ):
        yield heading
        yield from (f"{heading}.{key}" for key in rows(body))


# --- interfaces ---------------------------------------------------------------------------------


def test_every_field_of_the_json_is_described(dev: Rehearsal) -> None:
    answer = json.loads(json.dumps(dev.to_json()))
    fields = {
        *answer,
        *answer["resources"][0],
        *answer["price"],
        *answer["price"]["lines"][0],
        *answer["ready"],
        *answer["ready"]["criticalPath"][0],
    }
    assert fields - set(in_backticks(INTERFACES)) == set()


def test_every_stack_output_is_described(dev: Rehearsal) -> None:
    placed = rehearse("examples/batch-p5-capacity-block.yaml")
    described = set(rows(chapter(INTERFACES, "Stack outputs"))) - {"Output", "---"}
    assert set(output_paths({**dev.outputs, "placement": placed.outputs["placement"]})) == described


def output_paths(outputs: Mapping[str, Any]) -> Iterator[str]:
    for output, values in outputs.items():
        if output == "placement":
            yield from (f"placement.NAME.{key}" for each in values.values() for key in each)
            continue
        for key, value in values.items():
            if key == "groups":
                yield from (f"batch.groups.NAME.{part}" for each in value.values() for part in each)
            else:
                yield f"{output}.{key}"


# --- coming from the templates ------------------------------------------------------------------


@pytest.mark.parametrize("template", NAMES_IN_TEMPLATES)
def test_no_name_of_a_template_is_forgotten(template: str) -> None:
    answers = rows(chapter(TEMPLATES, template))
    wanted = set(NAMES_IN_TEMPLATES[template].split())
    assert {name for name in wanted if len(answers.get(name, "")) < len("Gone")} == set()


def test_the_page_for_comers_names_only_resources_that_a_component_creates() -> None:
    named = set(re.findall(r"`([a-z0-9]+\.[A-Z]\w+)`", TEMPLATES))
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("components/*.py"))
    assert named
    assert {each for each in named if f"aws.{each}(" not in code} == set()


# --- decisions ----------------------------------------------------------------------------------


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [path.name[:4] for path in DECISIONS]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_short_and_says_context_decision_and_consequence(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.name[:4]} ")
    assert len(text.splitlines()) <= 25
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.M) == ["Context", "Decision", "Consequence"]
