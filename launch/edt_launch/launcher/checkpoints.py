"""The checkpoints in a job's output directory, as far as the launcher looks at them: their names."""

import re
from pathlib import Path

NAME = re.compile(r"step-\d{8,}")
"""Names of checkpoints."""


def newest(folder: Path) -> Path | None:
    """The newest checkpoint in `folder`, by its name; None without one, or if it cannot be listed.

    Workers look whether it is whole, and tell why they cannot look.
    """
    try:
        found = [path for path in folder.iterdir() if NAME.fullmatch(path.name) and path.is_dir()]
    except OSError:
        return None
    return max(found, key=lambda path: int(path.name.removeprefix("step-")), default=None)
