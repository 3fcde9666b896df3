"""The pack as a folder that works wherever it is copied."""

import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from policy.bundle import NotABundle, bundle, locked_packages
from policy.catalogue import RULES
from policy.client import Pack
from policy.rule import Rule

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bundle, away from where it was made."""
    made = bundle(tmp_path_factory.mktemp("made") / "policy-pack")
    copy = tmp_path_factory.mktemp("empty") / "copied"
    shutil.move(made, copy)
    return copy


@pytest.fixture(scope="module")
def pack(folder: Path) -> Generator[Pack]:
    clean = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    with Pack(folder, environment=clean) as running:
        yield running


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_judges_with_the_facts_that_it_needs(rule: Rule, pack: Pack) -> None:
    violations = pack.judge(rule.bad, pack.configuration())
    assert rule.id in {each.rule for each in violations}
    assert not [each for each in violations if "could not judge" in each.line]


def test_it_has_nothing_that_rules_do_not_need(folder: Path) -> None:
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert not [name for name in names if "test" in name or "__pycache__" in name]
    assert {name.split("/")[0] for name in names} == {
        ".gitignore", "PulumiPolicy.yaml", "__main__.py", "fabric", "policy", "requirements.txt",
    }  # fmt: skip
    assert "policy/rules/interfaces.py" in names
    assert "policy/client.py" not in names
    assert "fabric/creation_times.json" not in names


def test_it_brings_its_own_virtual_environment(folder: Path) -> None:
    project = yaml.safe_load((folder / "PulumiPolicy.yaml").read_text())
    ours = yaml.safe_load((ROOT / "policy" / "PulumiPolicy.yaml").read_text())
    assert project["runtime"]["options"]["virtualenv"] == "venv"
    assert project["version"] == ours["version"]
    assert ours["runtime"]["options"]["virtualenv"] == "../.venv"


def test_its_packages_are_those_of_the_lock_with_hashes_and_no_more(folder: Path) -> None:
    text = (folder / "requirements.txt").read_text()
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    names = {entry.partition("==")[0] for entry in entries}
    assert {"pulumi", "pulumi-policy", "grpcio", "protobuf", "setuptools"} <= names
    assert not {"pulumi-aws", "rich", "pydantic"} & names
    assert all("--hash=sha256:" in entry for entry in entries)
    assert all(entry in (ROOT / "requirements.txt").read_text() for entry in entries)


def test_a_package_is_taken_with_what_it_needs_directly_or_not() -> None:
    lock = (
        "a==1 \\\n    --hash=sha256:aa\n    # via trainyard (pyproject.toml)\n"
        "b-c==2 \\\n    --hash=sha256:bb\n    # via\n    #   a\n    #   z\n"
        "d==3 \\\n    --hash=sha256:dd\n    # via b-c\n"
        "z==4 \\\n    --hash=sha256:ee\n    # via trainyard (pyproject.toml)\n"
    )
    assert [entry.partition("==")[0] for entry in locked_packages(lock, "a")] == ["a", "b-c", "d"]


def test_it_takes_the_place_of_an_earlier_bundle(tmp_path: Path) -> None:
    (bundle(tmp_path / "pack") / "left_over.py").touch()
    assert not (bundle(tmp_path / "pack") / "left_over.py").exists()


def test_it_deletes_nobody_else_s_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(NotABundle):
        bundle(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
