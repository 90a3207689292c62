"""The checkpoints in a job's output directory, as far as the launcher looks at them: their names."""

import re
from pathlib import Path

_NAME = re.compile(r"step-(\d{8,})")


def newest(folder: Path) -> Path | None:
    """The newest checkpoint in `folder`, by its name; None without one.

    Workers look whether it is whole.
    """
    try:
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return max(found, key=step_of, default=None)


def step_of(path: Path) -> int:
    """The number of commits after which a checkpoint was written.

    Raises:
        ValueError: it is not the name of a checkpoint.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ValueError(f"{path.name} is not the name of a checkpoint, such as step-00000123")
    return int(match[1])
