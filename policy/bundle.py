"""`python -m policy.bundle [DIRECTORY]`: the pack as a folder that needs nothing else.

It holds the modules that `policy/__main__.py` imports, directly or not, the data files that they
name, and the locked packages that `pulumi-policy` needs: fit to be copied into another project,
and for `pulumi policy publish`, which sends the folder of PulumiPolicy.yaml and nothing above it.
https://www.pulumi.com/docs/iac/using-pulumi/crossguard/get-started/
"""

import argparse
import ast
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT = REPOSITORY / "dist" / "policy-pack"
SDK = "pulumi-policy"


class NotABundle(ValueError):
    """The directory holds something else, which is not for us to delete."""


def bundle(directory: Path) -> Path:
    """Write the folder, in place of an earlier one; raises NotABundle where others' files are."""
    if directory.exists() and any(directory.iterdir()):
        if not (directory / "PulumiPolicy.yaml").exists():
            raise NotABundle(f"{directory} has files, and is no policy pack")
        shutil.rmtree(directory)
    for source in sorted(needed_files(REPOSITORY / "policy" / "__main__.py")):
        target = directory / source.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    shutil.move(directory / "policy" / "__main__.py", directory / "__main__.py")
    project = (REPOSITORY / "policy" / "PulumiPolicy.yaml").read_text()
    # relative to the folder, and made there by `pulumi install`
    own = project.replace("virtualenv: ../.venv", "virtualenv: venv")
    (directory / "PulumiPolicy.yaml").write_text(own)
    (directory / ".gitignore").write_text("venv/\n__pycache__/\n")
    lock = (REPOSITORY / "requirements.txt").read_text()
    (directory / "requirements.txt").write_text("".join(locked_packages(lock, SDK)))
    return directory


def needed_files(start: Path) -> set[Path]:
    """A module of the repository, what it imports of the repository, and the data beside it."""
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.suffix == ".py":
            tree = ast.parse(path.read_text(), str(path))
            waiting.extend(_imported(tree))
            waiting.extend(_data(tree, path))
    return found


def _imported(tree: ast.AST) -> Iterator[Path]:
    """Files of the imported modules that are ours, with the packages that they are in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                place = REPOSITORY.joinpath(*parts[:length])
                yield from filter(Path.is_file, (place / "__init__.py", place.with_suffix(".py")))


def _data(tree: ast.AST, module: Path) -> Iterator[Path]:
    """Files and folders beside a module that a text in it names, or that have its name."""
    named = [
        module.with_name(f"{node.value}{suffix}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[a-z_]+(\.json)?", node.value)
        for suffix in ("", ".json")
    ]
    for place in (*named, module.with_suffix(".json")):
        if place.is_file():
            yield place
        elif place.is_dir() and not (place / "__init__.py").exists():
            yield from (each for each in place.iterdir() if each.is_file())


def locked_packages(lock: str, package: str) -> list[str]:
    """The entries of a lock file for a package and for all that it needs.

    They are read from the comments in which uv says for which packages an entry is there.
    """
    entries = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)
    needed = {package}
    while True:
        more = {_name(entry) for entry in entries if needed & _wanted_by(entry)} - needed
        if not more:
            return [entry for entry in entries if _name(entry) in needed]
        needed |= more


def _name(entry: str) -> str:
    return entry.partition("==")[0]


def _wanted_by(entry: str) -> set[str]:
    _, _, comment = entry.partition("# via")
    return set(re.findall(r"[a-z0-9-]+", comment))


def main(arguments: list[str] | None = None) -> int:
    """Write the bundle and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m policy.bundle", description=bundle.__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=DEFAULT)
    directory: Path = parser.parse_args(arguments).directory
    try:
        bundle(directory)
    except NotABundle as error:
        parser.error(str(error))
    files = [path for path in directory.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1024
    print(f"{directory}: {len(files)} files, {size:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
