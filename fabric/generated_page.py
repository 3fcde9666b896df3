"""The command line of a page of documentation that is made from the code."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def print_write_or_check(
    page: Callable[[], str], *, program: str, description: str, arguments: list[str] | None
) -> int:
    """Print the page, or write or check a file of it; the exit status is returned."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", type=Path, metavar="PAGE", help="write the page")
    what.add_argument("--check", type=Path, metavar="PAGE", help="1 if the page is out of date")
    options = parser.parse_args(arguments)
    if options.write:
        options.write.write_text(page(), encoding="utf-8")
    elif not options.check:
        print(page(), end="")
    elif options.check.read_text(encoding="utf-8") != page():
        print(f"{options.check} is out of date; write it with --write", file=sys.stderr)
        return 1
    return 0
