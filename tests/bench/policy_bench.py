"""`python -m tests.bench.policy_bench`: our pack against Pulumi's own with as many empty rules.

Both are processes started as the engine starts them, and asked as the engine asks: Remediate and
Analyze for each of 1000 resources of a rehearsed stack, then AnalyzeStack. The goal is a ratio of
1.5 or less of the medians; start-up is told apart.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policy.catalogue import RULES
from policy.client import Pack
from rehearsal.run import REPOSITORY
from tests.bench.bench import run, stack_of

GOAL = 1.5
RESOURCES = 1000
GROUPS = 200  # of dev's form: more than 1000 resources
STOCK_PACK = """\
from pulumi_policy import PolicyPack, ResourceValidationPolicy, StackValidationPolicy

def nothing(args, report_violation):
    pass

PolicyPack("empty", [
    *(ResourceValidationPolicy(f"resource-{{n}}", "nothing", nothing) for n in range({resource})),
    *(StackValidationPolicy(f"stack-{{n}}", "nothing", nothing) for n in range({stack})),
])
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Time:
    """Seconds that a pack's process took until it said its port, and to judge the stack."""

    start: float
    judge: float


def rows_of_a_large_stack(directory: Path) -> list[dict[str, Any]]:
    """The first 1000 rows of a stack with many groups; parents come before their children."""
    answer = directory / "rows.json"
    run("rehearsal", str(stack_of(GROUPS, directory)), "--json", output=answer)
    rows = json.loads(answer.read_text())["resources"]
    if len(rows) < RESOURCES:
        raise RuntimeError(f"{GROUPS} groups are only {len(rows)} resources")
    return rows[:RESOURCES]


def stock_pack(directory: Path) -> Path:
    """A pack of the SDK's own with an empty policy for each of our rules."""
    on_stack = sum(rule.whole_program for rule in RULES)
    pack = directory / "stock"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(
        STOCK_PACK.format(resource=len(RULES) - on_stack, stack=on_stack)
    )
    return pack


def timed(pack: Path, rows: Sequence[dict[str, Any]]) -> Time:
    """One process, one stack."""
    start = time.perf_counter()
    with Pack(pack) as running:
        started = time.perf_counter()
        running.judge(rows, running.configuration())
        return Time(start=started - start, judge=time.perf_counter() - started)


def main() -> int:
    """Print both packs and their ratio; 1 when it misses the goal."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.policy_bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        rows = rows_of_a_large_stack(directory)
        packs = {"ours": REPOSITORY / "policy", "empty": stock_pack(directory)}
        times: dict[str, list[Time]] = {pack: [] for pack in packs}
        for _ in range(runs):
            for pack, path in packs.items():
                times[pack].append(timed(path, rows))
    print(f"{len(rows)} resources, {len(RULES)} rules, median of {runs}")
    medians = {pack: statistics.median(each.judge for each in ts) for pack, ts in times.items()}
    for pack, measured in times.items():
        start = statistics.median(each.start for each in measured)
        print(f"{pack:>6}  start {start:5.2f} s  judge {medians[pack]:6.2f} s")
    ratio = medians["ours"] / medians["empty"]
    print(f"ratio {ratio:.2f}, goal {GOAL} or less")
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
