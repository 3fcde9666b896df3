"""`python -m rehearsal STACK-OR-FILE [--json] [--project DIR]`: what a stack would create.

Exit status 0, or 1 when there are errors or mandatory findings.
"""

import argparse
import gc
import json
import sys
from pathlib import Path

from rehearsal.progress import progress
from rehearsal.run import REPOSITORY, rehearse


def main(arguments: list[str] | None = None) -> int:
    """Rehearse one stack and print the answer; the exit status is returned."""
    parser = argparse.ArgumentParser(
        prog="python -m rehearsal",
        description="Run a stack's program with no account and show what it would create.",
    )
    parser.add_argument(
        "stack", metavar="STACK-OR-FILE", help="dev for Pulumi.dev.yaml, or any file of that form"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument(
        "--project", type=Path, default=REPOSITORY, help="directory of Pulumi.yaml; default: here"
    )
    options = parser.parse_args(arguments)
    gc.disable()  # one run, in which nearly everything lives to the end: collecting only costs time
    with progress(f"rehearsing {options.stack}"):
        from policy.judge import judge  # the catalogue's imports belong under the progress line

        rehearsal = rehearse(options.stack, project=options.project, judge=judge)
    if options.json:
        json.dump(rehearsal.to_json(), sys.stdout)
        print()
    else:
        from rehearsal.report import print_report  # rich costs 0.1 s that JSON need not pay

        print_report(rehearsal)
    gc.freeze()  # spares the interpreter a last search through everything when it ends
    return 1 if rehearsal.failed else 0


if __name__ == "__main__":
    sys.exit(main())
