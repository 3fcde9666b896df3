"""Who may import whom, and other rules about the code as a whole."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("fabric", "settings", "components", "policy", "rehearsal")
RUNS_IN_CONTAINERS = REPOSITORY / "fabric" / "job_scripts"
# what each part may import beside Python's own modules and itself
ALLOWED = {
    "fabric": set[str](),
    "fabric/refresh": {"fabric", "boto3", "botocore"},
    "settings": {"fabric", "pydantic", "pydantic_core"},
    "settings/pulumi_config.py": {"fabric", "pulumi.runtime"},
    "components": {"fabric", "settings", "pulumi", "pulumi_aws"},
    "policy": {"fabric"},
    # the pack as a process; the rules and their verdict know nothing of the SDK
    **{
        f"policy/{name}.py": {"fabric", "google.protobuf", "grpc", "pulumi", "pulumi_policy"}
        for name in ("analyzer", "client", "sdk_policies", "wire")
    },
    "policy/configuration.py": {"fabric", "google.protobuf", "pulumi"},
    "rehearsal": {"fabric", "policy", "pulumi", "google.protobuf", "rich", "yaml"},
    "__main__.py": {"components", "settings", "pulumi", "pulumi_aws"},
}
LONGEST_FILE = 400
INSTANCE_FAMILY = re.compile(r"\b(p[3-6]|g[4-7]|trn\d|inf\d|dl\d|hpc\d)[a-z0-9-]*\b")


def sources(*parts: str) -> list[Path]:
    """Python files below these parts of the repository, without those that run elsewhere."""
    tops = [REPOSITORY / part for part in parts]
    files = [file for top in tops for file in ([top] if top.is_file() else top.rglob("*.py"))]
    return sorted(each for each in files if RUNS_IN_CONTAINERS not in each.parents)


def part_of(path: Path) -> str:
    """The narrowest entry of ALLOWED that a file belongs to."""
    name = path.relative_to(REPOSITORY).as_posix()
    return max((part for part in ALLOWED if f"{name}/".startswith(f"{part}/")), key=len)


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def forbidden_imports(tree: ast.AST, part: str) -> list[str]:
    allowed = {*ALLOWED[part], part.split("/")[0].removesuffix(".py")}
    return [
        module
        for module in imported_modules(tree)
        if module.split(".")[0] not in sys.stdlib_module_names
        and not any(f"{module}.".startswith(f"{name}.") for name in allowed)
    ]


def families_in_decisions(tree: ast.AST) -> Iterator[str]:
    """Texts that name an instance family where code decides what to do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            deciding: list[ast.AST] = [node.test]
        elif isinstance(node, ast.comprehension):
            deciding = list(node.ifs)
        elif isinstance(node, ast.match_case):
            deciding = [node.pattern, *([node.guard] if node.guard else [])]
        elif isinstance(node, ast.Compare):
            deciding = [node]
        else:
            continue
        for part in deciding:
            for each in ast.walk(part):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield from (match[0] for match in INSTANCE_FAMILY.finditer(each.value))


def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(), str(path))


def named(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("path", sources(*PACKAGES, "__main__.py"), ids=named)
def test_a_part_imports_only_what_the_design_allows(path: Path) -> None:
    assert forbidden_imports(parsed(path), part_of(path)) == []


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("fabric", "import boto3"),
        ("fabric", "from settings.stack import StackSettings"),
        ("fabric", "def late():\n    import pulumi"),
        ("settings", "import pulumi"),
        ("settings", "from components.network import Network"),
        ("settings/pulumi_config.py", "import pulumi"),
        ("rehearsal", "from settings.errors import Problem"),
        ("rehearsal", "import components"),
        ("components", "from rehearsal.run import rehearse"),
        ("components", "from . import network"),
    ],
)
def test_an_import_against_the_arrows_is_found(part: str, code: str) -> None:
    assert len(forbidden_imports(ast.parse(code), part)) == 1


@pytest.mark.parametrize("path", sources("fabric", "settings", "components"), ids=named)
def test_no_instance_family_is_named_in_a_decision(path: Path) -> None:
    assert list(families_in_decisions(parsed(path))) == []


@pytest.mark.parametrize(
    "code",
    [
        "if name.startswith('p5'): pass",
        "cards = 1 if family == 'hpc7a' else 2",
        "found = [each for each in types if each in ('trn1.32xlarge',)]",
        "match name:\n    case 'g4dn': pass",
        "is_old = family in {'p3dn'}",
    ],
)
def test_a_decision_by_instance_family_is_found(code: str) -> None:
    assert list(families_in_decisions(ast.parse(code)))


@pytest.mark.parametrize("path", sources(*PACKAGES, "tests", "__main__.py"), ids=named)
def test_no_file_is_too_long_to_read(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= LONGEST_FILE
