"""How much memory this process may still take."""

from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")
"""Files of a control group's limit and usage, and the row of its statistics for pages that it could drop."""


def available(groups: Path = _GROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes of main memory that are available, on this machine and in the control groups of this process.

    Args:
        groups: where control groups are mounted, of version 2 or 1.
        own: file with those of this process.
    """
    return min([psutil.virtual_memory().available, *_left_in(groups, own)])


def _left_in(groups: Path, own: Path) -> list[int]:
    """What each of the control groups has left; pages of files that it could drop are counted as free."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (groups / "memory", _V1) if controllers else (groups, _V2)
        folder = root / path.lstrip("/")
        for each in (folder, *folder.parents):
            if not each.is_relative_to(root):
                break
            left = _left(each, *names)
            if left is not None:
                found.append(left)
    return found


def _left(folder: Path, limit: str, usage: str, droppable: str) -> int | None:
    try:
        most, used = (folder / limit).read_text().strip(), int((folder / usage).read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # not mounted, or no limit is kept there
        return None
    return None if most == "max" else max(0, int(most) - used + int(statistics.get(droppable, 0)))
