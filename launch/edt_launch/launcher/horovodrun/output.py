"""What horovodrun prints: passed on as it is, and kept in the job's logs."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from edt_launch.core.files.appender import Appender, Complain
from edt_launch.core.run_dir import RunDir

MAX_LINE = 2**16
"""Bytes after which a line without an end is broken, in the logs."""

_FAILED = re.compile(rb"Process (\d{1,9}) exit with status code (\d{1,3})\.")
"""What Horovod says of a process that has failed. The number is the rank that it was started with."""

_STOPPED = re.compile(rb"([^:]+) -> stop running")
"""What Horovod says when it ends the job itself, behind the level and name of its log."""

_PIECE = re.compile(rb"(?<=[\r\n])")
"""Horovod puts its prefix before each line, and before each state of a progress bar."""

_PREFIX = re.compile(rb"\[(\d{1,9})\]<(?:stdout|stderr)>:")


class HorovodrunOutput:
    """Passes two streams on, and appends their lines to the logs of ranks, and of horovodrun itself.

    If `is_single`, all lines go to one log instead, as they are, and nothing is passed on. A log has no more
    than `limit` bytes.
    """

    def __init__(
        self,
        paths: RunDir,
        streams: Mapping[str, BinaryIO],
        complain: Complain,
        limit: int | None = None,
        *,
        is_single: bool = False,
    ) -> None:
        self._limit = limit
        self._is_single = is_single
        self._paths = paths
        self._streams = {} if is_single else dict(streams)
        self._complain = complain
        self.first_failure: str | None = None
        """Which worker has failed first, and how; None while none has."""
        self.stop_reason: str | None = None
        """Why Horovod has ended the job; None while it has not said so."""
        self._rest: dict[str, bytes] = {}
        self._logs: dict[Path, Appender] = {}

    def take(self, stream: str, data: bytes) -> None:
        """Take what was read of a stream; no data: it has ended."""
        self._pass_on(stream, data)
        *pieces, rest = _PIECE.split(self._rest.get(stream, b"") + data)
        if rest and (not data or len(rest) > MAX_LINE):
            pieces, rest = [*pieces, rest + b"\n"], b""
        self._rest[stream] = rest
        for piece in pieces:
            self._keep(piece)
        for log in self._logs.values():
            log.flush()

    def close(self) -> None:
        """Nothing more comes."""
        for stream in list(self._rest):
            self.take(stream, b"")
        for log in self._logs.values():
            log.close()

    def _pass_on(self, stream: str, data: bytes) -> None:
        target = self._streams.get(stream)
        if target is None:
            return
        try:
            target.write(data)
            target.flush()
        except OSError:  # nobody reads on; the logs have it all
            del self._streams[stream]

    def _keep(self, piece: bytes) -> None:
        prefix = _PREFIX.match(piece)
        rank = prefix[1].decode() if prefix else None
        if rank is None:
            self._explain(piece.rstrip())
        path = self.path_of(rank)
        if path not in self._logs:
            self._logs[path] = Appender(path, self._complain, limit=self._limit)
        self._logs[path].write_bytes(piece[prefix.end() if prefix and not self._is_single else 0 :])

    def path_of(self, rank: str | None) -> Path:
        """The log of a rank; None for horovodrun itself."""
        if self._is_single:
            return self._paths.job_log
        return self._paths.horovodrun_log if rank is None else self._paths.rank_log(rank)

    def _explain(self, line: bytes) -> None:
        """Look for the first reason why the job ends; workers that Horovod ends then are none."""
        if self.first_failure is not None or self.stop_reason is not None:
            return
        if failed := _FAILED.fullmatch(line):
            worker, code = failed[1].decode(), failed[2].decode()
            self.first_failure = f"rank {worker} at its start, exit code {code}, {self.path_of(worker)}"
        elif (stopped := _STOPPED.search(line)) and b"success count" not in stopped[1]:
            self.stop_reason = stopped[1].decode(errors="replace").strip()
