"""The error files of `@record`, and how failures are told: as torchrun tells them, the first one last."""

import contextlib
import json
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from edt_launch.core.history.events import Failed

MAX_SHOWN = 2**20
"""Bytes of an error file that are read at most."""

NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

_FORM = Template("""\
[$index]:
  time      : $time
  host      : $host
  rank      : $rank (local_rank: $local_rank)
  exitcode  : $exit_code$signal
  error_file: $file
  traceback : $text""")


@dataclass(frozen=True)
class WorkerError:
    """What the error file of a worker says: its text, and when it was written, in unix seconds."""

    text: str
    time: int | None = None


def read(path: Path) -> WorkerError | None:
    """What an error file says; None if there is none, or none of `@record`'s."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        with path.open("rb") as file:
            content: Any = json.loads(file.read(MAX_SHOWN))
        message = content["message"]
        if isinstance(message, str):
            return WorkerError(message, int(content.get("timestamp", 0)) or None)
        more = message["extraInfo"]
        return WorkerError(str(more.get("py_callstack") or message["message"]), int(more["timestamp"]))
    return None


@dataclass(frozen=True)
class WorkerFailure:
    """A failure, with the worker's local rank and its error file."""

    failed: Failed
    local_rank: int
    file: Path | None


def describe(title: str, failures: Sequence[WorkerFailure]) -> str:
    """Tell of failures, the first one last: by the times of error files, or in the order of events."""
    if not failures:
        return ""
    said = [(each, None if each.file is None else read(each.file)) for each in failures]
    first = min(range(len(said)), key=lambda i: (_time(said[i][1]) is None, _time(said[i][1]) or 0, i))
    others = [_one(index, *each) for index, each in enumerate(said) if index != first]
    line, rule = "=" * 60, "-" * 60
    head = [line, f"{title} FAILED", rule, "Failures:", *(others or ["  <NO_OTHER_FAILURES>"]), rule]
    return "\n".join([*head, "Root Cause (first observed failure):", _one(first, *said[first]), line])


def _time(error: WorkerError | None) -> int | None:
    return None if error is None else error.time


def _one(index: int, failure: WorkerFailure, error: WorkerError | None) -> str:
    failed = failure.failed
    at = time.localtime(None if _time(error) is None else _time(error))
    text = NO_TRACEBACK if error is None else error.text.strip().replace("\n", "\n  ")
    if error is None and failed.signal is not None:
        text = f"Signal {-failed.exit_code} ({failed.signal}) received"
    return _FORM.substitute(
        index=index,
        time=time.strftime("%Y-%m-%d_%H:%M:%S", at),
        host=socket.getfqdn() if failed.host == "localhost" else failed.host,
        rank=failed.rank,
        local_rank=failure.local_rank,
        exit_code=failed.exit_code,
        signal=f" ({failed.signal})" if failed.signal else "",
        file="<N/A>" if error is None else failure.file,
        text=text,
    )
