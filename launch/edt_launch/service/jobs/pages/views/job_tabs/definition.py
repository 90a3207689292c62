"""What a job runs, and where."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.core.masking import masked
from edt_launch.service.web import wording

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Definition:
    """What a job runs; `slots` are hosts with their devices, `digest` tells its code from other code."""

    command: str
    directory: str
    framework: str
    digest: str
    environment: Sequence[tuple[str, str]]
    files: Sequence[tuple[str, str]]
    files_left_out: int
    slots: Sequence[tuple[str, str]]


def definition(job: Json, submitted: Mapping[str, int], most: int = 200) -> Definition:
    """The tab; `submitted` are sizes of the submitted files. Values that look like secrets are left out."""
    return Definition(
        shlex.join(job["command"]),
        job["directory"],
        job["framework"] or "",
        job["code_digest"] or "",
        [(name, masked(name, value)) for name, value in sorted(job["environment"].items())],
        [(name, wording.amount(size)) for name, size in sorted(submitted.items())[:most]],
        max(0, len(submitted) - most),
        [(one["host"], ", ".join(one["devices"])) for one in job["hosts"]],
    )
