"""What every test has: a fixed clock, so that no example expires."""

from collections.abc import Generator

import pytest

from tests.support.rehearsing import fixed_clock


@pytest.fixture(autouse=True, scope="session")
def _clock() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    with fixed_clock():
        yield
