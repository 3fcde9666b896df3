"""Reading configuration files as the CLI does."""

import json
from pathlib import Path

import pytest

from rehearsal.configuration import ConfigurationError, read_configuration, stack_name
from rehearsal.model import Problem
from tests.unit.toy_project import write_project


def problem_with(stack: str, project: Path) -> Problem:
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(stack, project=project)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("dev", "dev"),
        ("Pulumi.foo.yaml", "foo"),
        ("examples/batch-p4d.yaml", "batch-p4d"),
        ("/somewhere/Pulumi.batch-p4d.yaml", "batch-p4d"),
    ],
)
def test_a_stack_is_named_after_its_file(given: str, name: str) -> None:
    assert stack_name(given) == name


def test_values_become_the_texts_that_a_program_receives(tmp_path: Path) -> None:
    project = write_project(
        tmp_path,
        "",
        config={
            "toy:flag": True,
            "toy:count": 3,
            "toy:ratio": 1.5,
            "toy:map": {"a": [1, {"b": 2}]},
        },
    )
    assert read_configuration("dev", project=project).texts == {
        "aws:region": "us-west-2",
        "toy:flag": "true",
        "toy:count": "3",
        "toy:ratio": "1.5",
        "toy:map": '{"a":[1,{"b":2}]}',
    }


def test_a_key_without_a_namespace_is_the_projects(tmp_path: Path) -> None:
    project = write_project(tmp_path, "", config={"size": 1})
    assert read_configuration("dev", project=project).section("size") == 1


def test_defaults_of_the_project_fill_what_the_stack_leaves_out(tmp_path: Path) -> None:
    schema = {
        "toy:size": {"type": "integer", "default": 2},
        "other": {"type": "string", "default": "x"},
        "gcp:zone": {"value": "z"},
        "aws:region": "eu-west-1",
    }
    project = write_project(tmp_path, "", config={"toy:other": "mine"}, schema=schema)
    assert read_configuration("dev", project=project).texts == {
        "toy:size": "2",
        "toy:other": "mine",
        "gcp:zone": "z",
        "aws:region": "us-west-2",
    }


def test_a_key_without_a_default_that_is_missing_is_an_error(tmp_path: Path) -> None:
    project = write_project(tmp_path, "", schema={"size": {"type": "integer"}})
    assert problem_with("dev", project).key == "toy:size"


@pytest.mark.parametrize(
    ("type_", "value"),
    [("integer", "x"), ("boolean", 1), ("array", {}), ("object", []), ("string", {"a": 1})],
)
def test_a_value_of_another_type_than_the_projects_is_a_problem(
    tmp_path: Path, type_: str, value: object
) -> None:
    project = write_project(tmp_path, "", config={"toy:k": value}, schema={"k": {"type": type_}})
    (problem,) = read_configuration("dev", project=project).problems
    assert problem.key == "toy:k"
    assert type_ in problem.reason


def test_an_encrypted_value_is_a_placeholder_and_marked(tmp_path: Path) -> None:
    config = {"toy:whole": {"secure": "v1:abc"}, "toy:part": {"deep": [{"secure": "v1:abc"}]}}
    configuration = read_configuration("dev", project=write_project(tmp_path, "", config=config))
    assert configuration.texts["toy:whole"] == "[secret]"
    assert json.loads(configuration.texts["toy:part"]) == {"deep": ["[secret]"]}
    assert configuration.secret_keys == {"toy:whole", "toy:part"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("22:00", "22:00"),
        ("2026-12-31T00:00:00Z", "2026-12-31T00:00:00Z"),
        ("012345678901", "012345678901"),
        ("true", True),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ('"12"', "12"),
    ],
)
def test_scalars_are_read_as_pulumi_reads_them(tmp_path: Path, written: str, value: object) -> None:
    project = write_project(tmp_path, "")
    (project / "Pulumi.dev.yaml").write_text(f"config:\n  toy:k: {written}\n")
    assert read_configuration("dev", project=project).section("k") == value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("config: [", "is not YAML"),
        ("just text", "is not a map"),
        ("config: 3", "has no map of the name config"),
        ("other: {}", "has no map of the name config"),
        ("config:\n  a: 1\n  a: 2\n", "the key a is there twice"),
    ],
)
def test_a_file_of_another_form_is_an_error_with_its_name(
    tmp_path: Path, content: str, reason: str
) -> None:
    project = write_project(tmp_path, "")
    (project / "Pulumi.dev.yaml").write_text(content)
    problem = problem_with("dev", project)
    assert problem.key == "Pulumi.dev.yaml"
    assert reason in problem.reason


def test_a_stack_that_does_not_exist_gets_the_nearest_name(tmp_path: Path) -> None:
    problem = problem_with("deb", write_project(tmp_path, ""))
    assert str(problem) == "Pulumi.deb.yaml: 'deb' does not exist; did you mean dev?"


def test_a_file_that_does_not_exist_gets_the_nearest_example(tmp_path: Path) -> None:
    project = write_project(tmp_path, "")
    (project / "examples").mkdir()
    (project / "examples" / "batch-p4d.yaml").write_text("config: {}")
    problem = problem_with("examples/batch-p4.yaml", project)
    assert problem.fix == "did you mean examples/batch-p4d.yaml?"


def test_a_relative_file_is_also_looked_for_in_the_project(tmp_path: Path) -> None:
    project = write_project(tmp_path, "")
    (project / "examples").mkdir()
    (project / "examples" / "one.yaml").write_text("config: {toy:a: 1}")
    assert read_configuration("examples/one.yaml", project=project).section("a") == 1


def test_overrides_replace_what_the_file_says(tmp_path: Path) -> None:
    project = write_project(tmp_path, "", config={"toy:a": 1, "toy:b": 1})
    configuration = read_configuration("dev", project=project, overrides={"toy:a": 2})
    assert (configuration.section("a"), configuration.section("b")) == (2, 1)
