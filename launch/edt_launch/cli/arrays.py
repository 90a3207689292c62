"""The indices of an array of jobs, as Slurm writes them."""

import re
from dataclasses import dataclass

from edt_launch.cli.errors import MistakenError

MAX_JOBS = 1000
"""Jobs of an array."""

_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


@dataclass(frozen=True)
class Indices:
    """Numbers of the jobs of an array, ascending, and how many of them may run at a time; None for all."""

    numbers: tuple[int, ...]
    limit: int | None


def indices(text: str) -> Indices:
    """The indices that such as 1-20, 1,3,5, 0-30:10 and 1-20%4 mean.

    Raises:
        MistakenError: they mean none, or more than `MAX_JOBS`.
    """
    listed, percent, limit = text.partition("%")
    expected = "give one such as 1-20, 1,3,5, 0-30:10, or 1-20%4 for at most 4 at a time"
    if percent and not re.fullmatch("[1-9][0-9]{0,5}", limit):
        raise MistakenError(f"--array {text}: {limit!r} is no number of jobs", expected)
    found: set[int] = set()
    for part in listed.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise MistakenError(f"--array {text}: {part!r} is neither an index nor a range", expected)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step:
            raise MistakenError(f"--array {text}: {part!r} has no indices", expected)
        chosen = range(first, last + 1, step)
        if len(found) + len(chosen) > MAX_JOBS:
            raise MistakenError(f"--array {text} has more than {MAX_JOBS} jobs", "submit several arrays")
        found.update(chosen)
    return Indices(tuple(sorted(found)), int(limit) if percent else None)
