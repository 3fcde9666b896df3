"""Says on stderr that something is going on, once it takes longer than people like to wait."""

import contextlib
import sys
import threading
from collections.abc import Generator
from itertools import cycle

PATIENCE_SECONDS = 2.0
FRAME_SECONDS = 0.1


@contextlib.contextmanager
def progress(text: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Generator[None]:
    """Show nothing at first; then a spinner on a terminal, or one line anywhere else."""
    finished = threading.Event()
    thread = threading.Thread(target=_show, args=(text, finished, patience_seconds), daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _show(text: str, finished: threading.Event, patience_seconds: float) -> None:
    if finished.wait(patience_seconds):
        return
    if not sys.stderr.isatty():
        print(f"{text} ...", file=sys.stderr, flush=True)
        return
    for frame in cycle("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"):
        print(f"\r{frame} {text}", end="", file=sys.stderr, flush=True)
        if finished.wait(FRAME_SECONDS):
            break
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # leave an empty line behind
