"""`python -m tests.golden.refresh`: write the golden lists anew; review the diff."""

from tests.golden.files import HERE, golden_file
from tests.golden.render import render
from tests.support.rehearsing import STACKS, rehearsed_stack


def main() -> None:
    """Write the list of every stack, and remove lists of stacks that are gone."""
    kept = {golden_file(stack) for stack in STACKS}
    for path in HERE.glob("*.txt"):
        if path not in kept:
            path.unlink()
    for stack in STACKS:
        golden_file(stack).write_text(render(rehearsed_stack(stack)))


if __name__ == "__main__":
    main()
