"""Every stack makes exactly the resources that its golden list has."""

import pytest

from tests.golden.files import HERE, golden_file
from tests.golden.render import render
from tests.support.rehearsing import STACKS, rehearsed_stack


@pytest.mark.parametrize("stack", STACKS)
def test_the_resources_are_those_of_the_golden_list(stack: str) -> None:
    golden = golden_file(stack).read_text()
    # asserted as lines, so that pytest shows the difference as a diff
    assert render(rehearsed_stack(stack)).splitlines() == golden.splitlines(), (
        f"{stack} makes other resources than its golden list says; "
        "if that is meant, run `make golden` and review the diff"
    )


def test_there_is_no_golden_list_of_a_stack_that_is_gone() -> None:
    assert sorted(HERE.glob("*.txt")) == sorted(golden_file(stack) for stack in STACKS)
