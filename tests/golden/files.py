"""Where the golden list of each stack is kept."""

from pathlib import Path

HERE = Path(__file__).parent


def golden_file(stack: str) -> Path:
    """The file for `dev` or `examples/batch-p4d.yaml`."""
    return HERE / f"{Path(stack).stem}.txt"
