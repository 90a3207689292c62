"""The body of a submission: what the job is to be, and its code, streamed."""

import json
import secrets
import sys
from collections.abc import Callable, Mapping
from typing import Any

from edt_launch.cli import packing
from edt_launch.cli.packing import Code, Entry
from edt_launch.cli.screen import bar, note, plural, size
from edt_launch.cli.transport import Writer


class Submission:
    """A multipart body of a job's properties and its code, if the service does not have that already.

    The archive is made while it is sent, so it needs no room anywhere.
    """

    def __init__(self, spec: Mapping[str, Any], code: Code | None) -> None:
        self._spec = spec
        self._code = code
        self._boundary = f"edt-{secrets.token_hex(16)}"
        self.content_type = f"multipart/form-data; boundary={self._boundary}"

    def write_to(self, file: Writer) -> None:
        """Write it."""
        self._start(file, 'name="spec"', "application/json")
        file.write(json.dumps(self._spec).encode())
        if self._code is not None:
            self._start(file, 'name="code"; filename="code.tar.gz"', "application/gzip")
            if self._code.size >= LARGE and sys.stderr.isatty():
                packing.write(self._code, file, _progress(self._code.size))
                sys.stderr.write("\r\x1b[K")
            else:
                packing.write(self._code, file)
        file.write(f"\r\n--{self._boundary}--\r\n".encode())

    def _start(self, file: Writer, disposition: str, kind: str) -> None:
        file.write(
            f"\r\n--{self._boundary}\r\nContent-Disposition: form-data; {disposition}\r\n"
            f"Content-Type: {kind}\r\n\r\n".encode()
        )


LARGE = 50_000_000
"""Bytes from which on the size is worth a remark and a bar."""


def _progress(total: int) -> Callable[[Entry], None]:
    """A bar on a terminal, while much is sent: called with each file before that is sent."""
    done, shown = 0, -1

    def draw(entry: Entry) -> None:
        nonlocal done, shown
        percent = 100 * done // max(total, 1)
        if percent != shown:
            shown = percent
            sys.stderr.write(f"\r{bar(percent / 100, 30)} {percent:3} % of {size(total)} \x1b[K")
            sys.stderr.flush()
        done += entry.size

    return draw


def tell(code: Code) -> None:
    """Say what is about to be sent, and what is not."""
    files = sum(1 for entry in code.entries if entry.size) or len(code.entries)
    note(f"code: {plural(files, 'file')}, {size(code.size)}, from {code.folder}")
    if code.size >= LARGE:
        largest = ", ".join(f"{name} {size(count)}" for name, count in code.largest)
        note(f"      most of it: {largest}; name in {packing.IGNORE_FILE} what the job does not need")
    for path in code.left_out[:5]:
        note(f"      left out: {path}")
    if len(code.left_out) > 5:
        note(f"      left out: {len(code.left_out) - 5} more")
