"""The pack in its own process, started and asked as the engine starts and asks it."""

import json
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from policy import check
from policy.catalogue import RULES
from policy.client import Pack, PackDidNotStart
from policy.configuration import ConfigurationError
from policy.examples import interface, resource
from policy.judge import findings
from policy.program import Program
from policy.rule import Finding, Rule
from policy.state import NoState, rows_of_state
from policy.tokens import LAUNCH_TEMPLATE
from policy.wire import SECRET, SIGNATURE
from tests.policy.stacks import UNKNOWN_TEXT, in_preview, rows_of

ROOT = Path(__file__).parents[2]
PRIMARY = "efa-primary-interface"  # a mandatory rule about one resource
BROKEN = [resource(LAUNCH_TEMPLATE, networkInterfaces=[interface(0, 0), interface(1, 0)])]
ANOTHER = {"number": 12345, "integer": 12345, "boolean": True, "array": ["x"], "string": "x"}
OPTIONS = [
    pytest.param(rule, name, id=f"{rule.id}.{name}") for rule in RULES for name in rule.options
]

per_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


@pytest.fixture(scope="module")
def pack() -> Generator[Pack]:
    with Pack(ROOT / "policy") as running:
        yield running


def code_blocks(language: str) -> list[str]:
    guide = (ROOT / "docs" / "policy.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)


def broken_rules(pack: Pack, rows: Any, configuration: str = "") -> dict[str, str]:
    """The level of each rule that is broken."""
    violations = pack.judge(rows, pack.configuration(configuration))
    return {each.rule: each.level for each in violations}


def test_it_names_every_rule_of_the_catalogue_with_its_level(pack: Pack) -> None:
    said = {rule.id: rule.level for rule in pack.rules(pack.configuration())}
    assert said == {rule.id: rule.level for rule in RULES}


@per_rule
def test_a_broken_program_is_found_with_what_to_do_and_where_to_read(
    rule: Rule, pack: Pack
) -> None:
    violations = pack.judge(rule.bad, pack.configuration())
    (first, *_) = [each for each in violations if each.rule == rule.id]
    assert first.level == rule.level
    assert first.urn in {row["urn"] for row in rule.bad}
    assert first.line.endswith(" ".join(f"; {rule.fix} ({rule.url})".split()))


@pytest.mark.parametrize("rule", [r for r in RULES if r.decides_in_preview], ids=lambda r: r.id)
def test_a_broken_program_is_found_in_a_preview(rule: Rule, pack: Pack) -> None:
    assert rule.id in broken_rules(pack, in_preview([dict(row) for row in rule.bad]))


def test_a_good_stack_may_be_created(pack: Pack) -> None:
    assert "mandatory" not in broken_rules(pack, rows_of("dev")).values()
    assert "mandatory" not in broken_rules(pack, in_preview(rows_of("dev"))).values()


def test_a_directory_without_a_pack_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(PackDidNotStart), Pack(tmp_path):
        pass


def test_it_ends_when_the_engine_is_gone() -> None:
    """The engine here is a process that starts the pack and is killed with no farewell."""
    engine = (
        "import os, subprocess, sys\n"
        "pack = subprocess.Popen([sys.executable, '-u', '-m', 'pulumi.policy', 'x', '.'],\n"
        "                        stdout=subprocess.PIPE, stderr=sys.stdout)\n"
        "pack.stdout.readline()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    # the pack holds our pipe: reading it to its end takes as long as the pack lives
    subprocess.run(
        [sys.executable, "-c", engine], cwd=ROOT / "policy", stdout=subprocess.PIPE, timeout=20
    )


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configuration", "level"),
    [
        ({}, "mandatory"),
        ({PRIMARY: "advisory"}, "advisory"),
        ({PRIMARY: {"enforcementLevel": "advisory"}}, "advisory"),
        ({PRIMARY: "remediate"}, "mandatory"),
        ({PRIMARY: "disabled"}, None),
        ({"all": "advisory"}, "advisory"),
        ({"all": {"enforcementLevel": "disabled"}}, None),
        ({"all": "disabled", PRIMARY: "mandatory"}, "mandatory"),
        ({PRIMARY: "mandatory", "all": "disabled"}, "mandatory"),
        ({PRIMARY: "advisory", "environments": ["ours"]}, "advisory"),
    ],
)
def test_a_level_is_set_for_one_rule_or_for_all(
    configuration: dict[str, Any], level: str | None, pack: Pack
) -> None:
    assert broken_rules(pack, BROKEN, json.dumps(configuration)).get(PRIMARY) == level


@pytest.mark.parametrize(("rule", "name"), OPTIONS)
def test_an_option_can_be_set_and_keeps_its_default_otherwise(
    rule: Rule, name: str, pack: Pack
) -> None:
    def options(text: str = "") -> dict[str, Any]:
        return json_format.MessageToDict(pack.configuration(text)[rule.id].properties)

    another = ANOTHER[rule.options[name].kind]
    assert options() == rule.defaults()
    assert options(json.dumps({rule.id: {name: another}})) == rule.defaults() | {name: another}


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        ('{"efa-primary-interfaces": "advisory"}', "did you mean efa-primary-interface"),
        (f'{{"{PRIMARY}": "soft"}}', '"soft" is none of advisory, mandatory'),
        (f'{{"{PRIMARY}": 3}}', "neither a level nor an object"),
        (f'{{"{PRIMARY}": {{"cards": 3}}}}', "has no option cards"),
        ('{"all": {"cards": 3}}', "all takes an enforcementLevel only"),
        ("[]", "not an object"),
        ("{", "no JSON"),
    ],
)
def test_what_no_rule_knows_is_an_error(configuration: str, reason: str, pack: Pack) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        pack.configuration(configuration)


@pytest.mark.parametrize(("rule", "name"), OPTIONS)
@pytest.mark.parametrize("value", ["null", "{}"])
def test_an_option_of_the_wrong_kind_is_an_error(
    rule: Rule, name: str, value: str, pack: Pack
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{rule.id}\.{name}: .* is no "):
        pack.configuration(f'{{"{rule.id}": {{"{name}": {value}}}}}')


def test_the_configuration_in_the_guide_is_one(pack: Pack) -> None:
    (text,) = code_blocks("json")
    configuration = pack.configuration(text)
    assert configuration.keys() >= json.loads(text).keys() - {"all"}


def test_the_rule_in_the_guide_is_one() -> None:
    (text,) = code_blocks("python")
    names: dict[str, Any] = {}
    exec(text, names)
    (rule,) = names["RULES"]

    def found(rows: Any) -> list[Finding]:
        return [each for row in rows for each in findings(rule, row, Program(), rule.defaults())]

    assert found(rule.bad)
    assert not found(rule.good)


# --- what the CLI wrote down ----------------------------------------------------------------------


def state_of(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A resource as it stands in an exported state."""
    return {key: row[key] for key in ("urn", "type", "inputs", "propertyDependencies")} | more


def exported(*states: dict[str, Any]) -> str:
    return json.dumps({"version": 3, "deployment": {"resources": states}})


def previewed(*states: dict[str, Any]) -> str:
    return json.dumps({"steps": [{"op": "create", "newState": state} for state in states]})


@pytest.mark.parametrize("written", [exported, previewed])
def test_a_state_and_a_preview_are_judged(written: Any, pack: Pack) -> None:
    assert PRIMARY in broken_rules(pack, rows_of_state(written(state_of(BROKEN[0]))))


def test_a_resource_that_goes_is_not_judged() -> None:
    gone = state_of(BROKEN[0], delete=True)
    assert rows_of_state(exported(gone)) == []
    assert rows_of_state(json.dumps({"steps": [{"op": "delete", "oldState": gone}]})) == []


def test_a_resource_that_is_replaced_is_judged_once() -> None:
    assert len(rows_of_state(previewed(state_of(BROKEN[0]), state_of(BROKEN[0])))) == 1


@pytest.mark.parametrize(
    ("written", "sent"),
    [({"ciphertext": "AAAA"}, UNKNOWN_TEXT), ({"plaintext": '{"a": [1]}'}, {"a": [1]})],
)
def test_a_secret_of_a_state_is_unknown_unless_it_was_shown(written: Any, sent: Any) -> None:
    state = state_of(resource(LAUNCH_TEMPLATE, userData={SIGNATURE: SECRET, **written}))
    (row,) = rows_of_state(exported(state))
    assert row["inputs"] == {"userData": {SIGNATURE: SECRET, "value": sent}}


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"deployments": 1}'])
def test_another_file_is_no_state(text: str) -> None:
    with pytest.raises(NoState):
        rows_of_state(text)


# --- python -m policy.check -----------------------------------------------------------------------


def test_a_stack_is_rehearsed_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["dev"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"dev: passes, {len(rows_of('dev'))} resources")
    assert f"{len(RULES)} rule" in said
    assert f"{sum(rule.decides_in_preview for rule in RULES)} can decide in a preview" in said


def test_the_exit_status_tells_whether_a_mandatory_rule_is_broken(tmp_path: Path) -> None:
    state, configuration = tmp_path / "state.json", tmp_path / "configuration.json"
    state.write_text(exported(state_of(BROKEN[0])))
    assert check.main(["--state", str(state)]) == 1
    configuration.write_text('{"all": "advisory"}')
    assert check.main(["--state", str(state), "--config", str(configuration)]) == 0


def test_a_finding_in_a_preview_is_placed_in_the_file_of_its_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {**BROKEN[0], "urn": "urn:pulumi:prod::project::type::it"}
    Path("preview.json").write_text(previewed(state_of(row)))
    Path("Pulumi.prod.yaml").touch()
    check.main(["--state", "preview.json", "--format", "sarif"])
    assert '"uri": "Pulumi.prod.yaml"' in capsys.readouterr().out


def test_a_stack_that_cannot_be_rehearsed_does_not_pass(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert check.main([str(tmp_path / "none.yaml")]) == 1
    assert "cannot be judged" in capsys.readouterr().out


def test_a_file_that_is_no_state_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    assert check.main(["--state", str(tmp_path / "state.json")]) == 1


def test_a_wrong_argument_is_told_from_a_broken_rule(tmp_path: Path) -> None:
    (tmp_path / "configuration.json").write_text('{"no-rule": "advisory"}')
    with pytest.raises(SystemExit) as ended:
        check.main(["dev", "--config", str(tmp_path / "configuration.json")])
    assert ended.value.code == 2


@pytest.mark.parametrize(("kind", "start"), [("sarif", "{"), ("junit", "<?xml"), ("text", "/")])
def test_a_report_goes_to_a_file_and_the_text_is_still_printed(
    kind: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, report = tmp_path / "state.json", tmp_path / "report"
    state.write_text(exported(state_of(BROKEN[0])))
    assert check.main(["--state", str(state), "--format", kind, "--output", str(report)]) == 1
    assert report.read_text().startswith(start)
    assert "refused, 1 resource, " in capsys.readouterr().out


def test_a_stack_of_another_program_is_judged_with_that_program(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {aws:region: us-west-2}\n")
    (tmp_path / "__main__.py").write_text(
        "import pulumi_aws as aws\n"
        "aws.ec2.LaunchTemplate('t', network_interfaces=[{'interface_type': 'efa-only'}])\n"
    )
    assert check.main([str(tmp_path / "Pulumi.dev.yaml")]) == 1
