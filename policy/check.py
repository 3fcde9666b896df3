"""`python -m policy.check [STACK-OR-FILE ...]`: judge stacks with the pack, without the CLI.

Each stack is rehearsed (dev and all of examples/ where none is named) or read from what the CLI
wrote (`--state`), and judged by the pack's own process, started and asked as the engine does it.
Exit status 1 when a mandatory rule is broken or a stack cannot be judged, 2 for a wrong argument.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from fabric.rows import text
from policy.client import Pack, PackDidNotStart
from policy.configuration import Configuration, ConfigurationError
from policy.report import PackRule, Verdict, as_junit, as_sarif, as_text
from policy.state import NoState, rows_of_state

REPOSITORY = Path(__file__).resolve().parent.parent
FORMATS: dict[str, Callable[[Sequence[Verdict], Sequence[PackRule]], str]] = {
    "text": as_text,
    "sarif": as_sarif,
    "junit": as_junit,
}
AT_ONCE = 2  # rehearsals; each is a process of 200 MB


def main(arguments: list[str] | None = None) -> int:
    """Judge, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m policy.check", description="Judge stacks with the policy pack."
    )
    parser.add_argument(
        "stacks", metavar="STACK-OR-FILE", nargs="*", help="default: dev and all of examples/"
    )
    parser.add_argument(
        "--project", metavar="DIRECTORY", type=Path,
        help="whose program to rehearse; default: the stack file's own, else this repository",
    )  # fmt: skip
    parser.add_argument(
        "--state", metavar="FILE", nargs="+", default=[], type=Path,
        help="output of `pulumi stack export` or `pulumi preview --json --show-sames`",
    )  # fmt: skip
    parser.add_argument(
        "--pack", metavar="DIRECTORY", default=REPOSITORY / "policy", type=Path, help="another pack"
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="levels and options, as --policy-pack-config"
    )
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="write the report there, and print the text"
    )
    options = parser.parse_args(arguments)
    stacks: list[str] = options.stacks or ([] if options.state else _all_stacks())
    try:
        with Pack(options.pack) as pack:
            configuration = pack.configuration(options.config.read_text() if options.config else "")
            verdicts = [
                *_rehearsed(stacks, options.project, pack, configuration),
                *(_stored(file, pack, configuration) for file in options.state),
            ]
            rules = pack.rules(configuration)
    except (ConfigurationError, PackDidNotStart, OSError) as error:
        parser.error(str(error))
    report = FORMATS[options.format](verdicts, rules)
    if options.output:
        options.output.write_text(report)
        report = as_text(verdicts, rules)
    print(report, end="")
    return int(any(verdict.refused for verdict in verdicts))


def _all_stacks() -> list[str]:
    examples = sorted((REPOSITORY / "examples").glob("*.yaml"))
    return ["dev", *(path.relative_to(REPOSITORY).as_posix() for path in examples)]


def _rehearsed(
    stacks: Sequence[str], project: Path | None, pack: Pack, configuration: Configuration
) -> list[Verdict]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rehearsals = pool.map(partial(_rehearse, project=project), stacks)
        return [
            _verdict(stack, rehearsal, pack, configuration)
            for stack, rehearsal in zip(stacks, rehearsals, strict=True)
        ]


def _rehearse(stack: str, *, project: Path | None) -> dict[str, Any]:
    """The answer of `python -m rehearsal`, which policy code must not import."""
    known = (REPOSITORY / stack).exists()  # a name of ours, from whatever directory it is asked for
    file = stack if known or not Path(stack).exists() else str(Path(stack).resolve())
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "rehearsal", file, "--json", "--project", _project(file, project)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not done.stdout.strip():
        said = done.stderr.strip().splitlines()
        reason = said[-1] if said else "the rehearsal said nothing"
        return {"errors": [{"key": None, "reason": reason, "fix": None}], "resources": []}
    return json.loads(done.stdout)


def _project(file: str, stated: Path | None) -> str:
    """The program that a stack's file configures: the one it lies beside, or else ours."""
    beside = Path(file).parent
    own = beside if (beside / "Pulumi.yaml").exists() else REPOSITORY
    return str((stated or own).resolve())


def _verdict(
    stack: str, rehearsal: dict[str, Any], pack: Pack, configuration: Configuration
) -> Verdict:
    file = f"Pulumi.{stack}.yaml" if (REPOSITORY / f"Pulumi.{stack}.yaml").exists() else stack
    if rehearsal["errors"]:
        reasons = [
            f"{each['key'] or stack}: {each['reason']}" + (f"; {each['fix']}" * bool(each["fix"]))
            for each in rehearsal["errors"]
        ]
        return Verdict(stack=stack, file=file, errors=reasons)
    rows = [row for row in rehearsal["resources"] if not row.get("external")]
    violations = pack.judge(rows, configuration, stack=Path(file).stem)
    return Verdict(stack=stack, file=file, resources=len(rows), violations=violations)


def _stored(file: Path, pack: Pack, configuration: Configuration) -> Verdict:
    """The verdict on what the CLI wrote, placed in the stack's own file where it is here."""
    try:
        rows = rows_of_state(file.read_text())
    except NoState as error:
        return Verdict(stack=str(file), file=str(file), errors=[str(error)])
    stack = text(rows[0]["urn"]).split("::")[0].rpartition(":")[2] if rows else file.stem
    own = Path(f"Pulumi.{stack}.yaml")
    return Verdict(
        stack=str(file),
        file=str(own if own.exists() else file),
        resources=len(rows),
        violations=pack.judge(rows, configuration, stack=stack),
    )


if __name__ == "__main__":
    sys.exit(main())
