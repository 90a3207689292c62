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
        checkpoints = [path for path in folder.iterdir() if NAME.fullmatch(path.name) and path.is_dir()]
    except OSError:
        return None
    return max(checkpoints, key=lambda path: int(path.name.removeprefix("step-")), default=None)


def how_to_go_on(folder: Path, output: str) -> str:
    """What to tell the user of a job that has been left; `output` is the option of its output directory."""
    if newest(folder) is None:
        return "there is no checkpoint: started again, the job begins anew"
    return f"start it again with {output} to go on"
