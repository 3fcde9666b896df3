"""`python -m tests.bench.bench`: time and peak memory of a rehearsal, and against plain Pulumi.

Each figure is the median of runs in fresh processes, after one that warms the caches. The plain
program creates the same resources with the SDK's classes under stock mocks (plain_program.py); the
goal is a ratio of 1.3 or less at every size.
"""

import argparse
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from rehearsal.run import REPOSITORY

GOAL = 1.3
SIZES = (1, 10, 100, 1000)
RUNS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one process took."""

    seconds: float
    megabytes: float


def run(*command: str, output: Path) -> Cost:
    """Run a Python module once, its output in a file; raises RuntimeError when it fails."""
    with output.open("w") as out:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=REPOSITORY, stdout=out, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{' '.join(command)} failed; its output is in {output}")
    return Cost(seconds=seconds, megabytes=usage.ru_maxrss / 1024)


def median(costs: list[Cost]) -> Cost:
    """The median of time and of memory."""
    return Cost(
        seconds=statistics.median(cost.seconds for cost in costs),
        megabytes=statistics.median(cost.megabytes for cost in costs),
    )


def stack_of(groups: int, directory: Path) -> Path:
    """A stack file like dev's with so many batch groups, each a copy of dev's one."""
    stack = yaml.safe_load((REPOSITORY / "Pulumi.dev.yaml").read_text())
    batch = stack["config"]["trainyard:batch"]
    (group,) = batch["groups"]
    batch["groups"] = [
        {**copy.deepcopy(group), "name": f"g{number:04}"} for number in range(1, groups + 1)
    ]
    path = directory / f"groups-{groups}.yaml"
    path.write_text(yaml.safe_dump(stack))
    return path


def compare(stack: str, *, runs: int, directory: Path) -> tuple[Cost, Cost]:
    """Medians of the rehearsal and of the plain program, run in turn."""
    answer = directory / "answer.json"
    rehearsals: list[Cost] = []
    plain: list[Cost] = []
    for _ in range(runs):
        rehearsals.append(run("rehearsal", stack, "--json", output=answer))
        plain.append(run("tests.bench.plain_program", str(answer), output=directory / "plain.txt"))
    return median(rehearsals), median(plain)


def main() -> int:
    """Print the table; 1 when a ratio misses the goal."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="numbers of groups")
    sizes: list[int] = parser.parse_args().sizes
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        run("rehearsal", "dev", "--json", output=directory / "warm.json")
        print(
            f"{'stack':>12} {'time':>9} {'memory':>9} {'each group':>11} {'plain':>9} {'ratio':>6}"
        )
        base: tuple[int, float] | None = None
        for groups in (None, *sizes):
            stack = "dev" if groups is None else str(stack_of(groups, directory))
            runs = RUNS if (groups or 1) <= 10 else 3 if groups == 100 else 1
            rehearsed, plain = compare(stack, runs=runs, directory=directory)
            ratio = rehearsed.seconds / plain.seconds
            worst = max(worst, ratio)
            more = ""
            if groups and base and groups > base[0]:
                more = f"{(rehearsed.seconds - base[1]) / (groups - base[0]) * 1000:.1f} ms"
            base = base or (groups and (groups, rehearsed.seconds)) or None
            title = "dev" if groups is None else f"{groups} groups"
            print(
                f"{title:>12} {rehearsed.seconds:7.2f} s {rehearsed.megabytes:6.0f} MB {more:>11} "
                f"{plain.seconds:7.2f} s {ratio:6.2f}",
                flush=True,
            )
    print(f"worst ratio {worst:.2f}, goal {GOAL} or less")
    return int(worst > GOAL)


if __name__ == "__main__":
    sys.exit(main())
