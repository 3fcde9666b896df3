"""What the engine starts: `python -u -m pulumi.policy ENGINE_ADDRESS DIRECTORY_OF_THIS_FILE`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE if (HERE / "fabric").is_dir() else HERE.parent  # the bundle holds all it needs


def main() -> None:
    """Serve the rules until the engine ends."""
    # the engine starts Python in this directory: its modules must not hide anybody else's
    sys.path[:] = [str(ROOT), *(each for each in sys.path if Path(each).resolve() != HERE)]
    from policy.analyzer import serve
    from policy.catalogue import RULES

    serve(RULES)


if __name__ == "__main__":
    main()
