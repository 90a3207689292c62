"""The files of a job on a host that does not see its output directory.

::

    ~/.cache/edt/code/<SHA-256>        archives of programs' files; removed a week after their last use
    ~/.cache/edt/jobs/<job>.<host>/    a job's own folder, removed with the job's agent
        code/                          the program's files
        output/                        stands for the output directory

XDG_CACHE_HOME may name another folder than ~/.cache. Nothing here waits but for the disk.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from edt_launch.agent.protocol import (
    CODE,
    MAX_PIECE,
    Code,
    Fetch,
    Fetched,
    Listed,
    Piece,
    Put,
    Stored,
    Want,
)
from edt_launch.core.files import plain_files
from edt_launch.core.files.walking import walk
from edt_messages.runs import JOB

KEPT_SECONDS = 7 * 86400.0
"""For which an archive of code is kept after its last use."""

MAX_FILES = 10_000
"""Files that are listed at most."""

NOT_LISTED = ("checkpoint", "run")

FOLDERS = ("checkpoint", "log", "model/train", "run")
"""Those that an output directory has."""


def sees(path: str, nonce: str) -> bool:
    """Whether this host sees the file of this text at `path`."""
    try:
        return Path(path).read_bytes() == nonce.encode()
    except OSError:
        return False


@dataclass
class _Receipt:
    """A file that is being received."""

    path: str
    target: Path
    size: int
    digest: str
    beside: Path
    file: IO[bytes]
    hash: Any = field(default_factory=hashlib.sha256)
    received: int = 0

    def add(self, data: bytes) -> None:
        self.file.write(data)
        self.file.flush()
        self.hash.update(data)
        self.received += len(data)

    def put_in_place(self) -> str | None:
        """Give it its name; why not, if its content is another's."""
        if self.received != self.size or self.hash.hexdigest() != self.digest:
            return (
                f"{self.target}: {self.received} bytes have come, of {self.size} bytes with another SHA-256"
            )
        self.beside.rename(self.target)
        return None


class Files:
    """The folder of a job on this host. Reports are handed to `send`.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        host: str,
        send: Callable[[Want | Stored | Fetched | Listed], None],
    ) -> None:
        self._send = send
        self._cache = _cache(environment)
        self.root = self._cache / "jobs" / f"{environment[JOB]}.{host}"
        self.output, self.code = self.root / "output", self.root / "code"
        self._receipts: dict[str, _Receipt] = {}
        self._unpacking: subprocess.Popen[bytes] | None = None
        for folder in (self.root, self._cache / "code"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = (self.root / "lock").open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _clean_up(self._cache, time.time())
        for folder in (self.code, self.output):
            shutil.rmtree(folder, ignore_errors=True)
        for name in FOLDERS:
            (self.output / name).mkdir(parents=True)

    def close(self) -> None:
        """Remove the folder."""
        for receipt in self._receipts.values():
            receipt.file.close()
        shutil.rmtree(self.root, ignore_errors=True)
        self._lock.close()

    # What comes.

    def have_code(self, code: Code) -> bool:
        """See to it that the program's files are here; whether they are.

        If not, they are once `unpacked` says so.
        """
        if not code.digest:
            self._send(Stored(CODE))
            return True
        archive = self._cache / "code" / code.digest
        self._code = archive
        if archive.exists():
            os.utime(archive)
            self._unpack()
        else:
            self._receive(CODE, archive, code.digest, code.size)
        return False

    def put(self, order: Put) -> None:
        """Have a file in the folder that stands for the output directory."""
        target = self._below(order.path)
        if target is None:
            self._send(Stored(order.path, "it is not below the output directory"))
        else:
            self._receive(order.path, target, order.digest, order.size)

    def take(self, piece: Piece) -> None:
        """A piece has come that was wanted."""
        receipt = self._receipts.get(piece.path)
        if receipt is None:
            return
        if not piece.data:
            self._end(receipt, "the launcher cannot read it any more")
            return
        try:
            receipt.add(piece.data)
            self._go_on(receipt)
        except OSError as error:
            self._end(receipt, _text(error, receipt.target))

    def unpacked(self, pid: int) -> bool:
        """A child has ended; whether the program's files are here since."""
        if self._unpacking is None or self._unpacking.pid != pid:
            return False
        assert self._unpacking.stdout is not None
        said = self._unpacking.stdout.read().decode(errors="replace")
        self._unpacking.stdout.close()
        self._unpacking = None
        self._send(Stored(CODE, said or None))
        return not said

    def _receive(self, path: str, target: Path, digest: str, size: int) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, beside = tempfile.mkstemp(prefix=".part-", dir=target.parent)
        except OSError as error:
            self._send(Stored(path, _text(error, target.parent)))
            return
        file = os.fdopen(descriptor, "wb")
        self._receipts[path] = receipt = _Receipt(path, target, size, digest, Path(beside), file)
        self._go_on(receipt)

    def _go_on(self, receipt: _Receipt) -> None:
        if receipt.received < receipt.size:
            self._send(Want(receipt.path, receipt.received))
        else:
            self._end(receipt, receipt.put_in_place())

    def _end(self, receipt: _Receipt, error: str | None) -> None:
        del self._receipts[receipt.path]
        with contextlib.suppress(OSError):  # what is left in its buffer does not fit either
            receipt.file.close()
        receipt.beside.unlink(missing_ok=True)
        if receipt.path == CODE and error is None:
            self._unpack()
        else:
            self._send(Stored(receipt.path, error))

    def _unpack(self) -> None:
        """Start the process that does; the agent's heartbeats must not wait for that."""
        unpack = (sys.executable, "-P", "-m", "edt_launch.agent.transfer.unpack")
        words = (*unpack, str(self._code), self._code.name, str(self.code))
        self._unpacking = subprocess.Popen(words, stdout=subprocess.PIPE)
        self._unpacking.returncode = 0  # the agent waits for it

    # What goes.

    def fetch(self, order: Fetch) -> None:
        """Send a piece of a file."""
        target = self._below(order.path)
        if target is None:
            self._send(Fetched(order.path, order.offset, b"", "it is not below the output directory"))
            return
        try:
            with plain_files.open_file(target) as file:
                file.seek(order.offset)
                self._send(Fetched(order.path, order.offset, file.read(MAX_PIECE)))
        except OSError as error:
            self._send(Fetched(order.path, order.offset, b"", _text(error, target)))

    def list(self) -> None:
        """Say which files there are, `MAX_FILES` at most."""
        files: dict[str, str] = {}
        for path in walk(self.output):
            name = path.relative_to(self.output)
            if name.parts[0] in NOT_LISTED or len(files) >= MAX_FILES:
                continue
            with contextlib.suppress(OSError):  # it is just being removed
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    files[str(name)] = str(status.st_size)
        self._send(Listed(files))

    def _below(self, path: str) -> Path | None:
        parts = PurePosixPath(path).parts
        return None if not parts or ".." in parts or parts[0] == "/" else self.output.joinpath(*parts)


def _cache(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.path.abspath(folder)) / "edt"


def _clean_up(cache: Path, now: float) -> None:
    """Remove what agents have left that are gone, and archives that nobody has used for long."""
    for folder in (cache / "jobs").iterdir():
        with contextlib.suppress(OSError), (folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    for archive in (cache / "code").iterdir():
        with contextlib.suppress(OSError):
            if now - archive.stat().st_mtime > KEPT_SECONDS:
                archive.unlink()


def _text(error: OSError, path: Path) -> str:
    return f"{path}: {error.strerror or error}"
