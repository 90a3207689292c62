"""What a job runs, and where."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.web import wording

Json = Mapping[str, Any]

_SECRET = re.compile(r"secret|token|passw|pwd|key|credential|auth|access", re.IGNORECASE)

_PASSWORD = re.compile(r"(://[^/\s:@]*:)\S+@")
"""What is secret in an address: `postgresql://ann:secret@host/name`."""


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
        [
            (name, "…" if _SECRET.search(name) else _PASSWORD.sub(r"\1…@", value))
            for name, value in sorted(job["environment"].items())
        ],
        [(name, wording.amount(size)) for name, size in sorted(submitted.items())[:most]],
        max(0, len(submitted) - most),
        [(one["host"], ", ".join(one["devices"])) for one in job["hosts"]],
    )
