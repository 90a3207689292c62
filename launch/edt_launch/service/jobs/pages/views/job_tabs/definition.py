"""What a job runs, and where, besides what its answer says."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edt_launch.core.text.masking import masked
from edt_launch.service.jobs.schemas import Job


@dataclass(frozen=True)
class Definition:
    """The command as it is written, variables without secrets, and sizes of submitted files."""

    command: str
    environment: Sequence[tuple[str, str]]
    files: Sequence[tuple[str, int]]
    files_left_out: int


def definition(job: Job, submitted: Mapping[str, int], most: int = 200) -> Definition:
    """The tab; `submitted` are sizes of the submitted files."""
    return Definition(
        shlex.join(job.command or ()),
        [(name, masked(name, value)) for name, value in sorted((job.environment or {}).items())],
        sorted(submitted.items())[:most],
        max(0, len(submitted) - most),
    )
