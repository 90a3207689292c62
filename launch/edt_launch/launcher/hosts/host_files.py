"""The files of a job that go to hosts which do not see its output directory, and come from them."""

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from edt_launch.agent.protocol import NONCE, Code
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.hosts import checkpoint_transfer, code_archive
from edt_launch.launcher.hosts.code_archive import Archive, CodeError
from edt_launch.launcher.hosts.transfers import TransferError, Transfers

KEPT_CHECKPOINTS = 3


class HostFiles:
    """The files of a run of a job.

    Args:
        paths: the job's output directory.
        command: of its workers.
        directory: where they are started.
        keep: checkpoints that are kept; None for the usual number.

    Raises:
        OSError: the output directory cannot be written.
    """

    def __init__(self, paths: RunDir, command: Sequence[str], directory: Path, keep: int | None) -> None:
        self.output = paths.root
        self.nonce = secrets.token_hex(16)
        self._archive_path = paths.run / "code.tar.gz"
        self._folder = code_archive.folder_of(command, directory)
        self._keep = KEPT_CHECKPOINTS if keep is None else keep
        self._archive: asyncio.Task[Archive] | None = None
        self._is_fetching = asyncio.Lock()
        self._newest: dict[str, str] = {}
        write_atomically(paths.root / NONCE, self.nonce)

    async def send_code(self, transfers: Transfers) -> None:
        """Send the program's files to a host.

        Raises:
            TransferError: they cannot be sent, or the host cannot store them.
        """
        if self._folder is None:
            await transfers.put(Code(), self._archive_path)
            return
        if self._archive is None:
            packing = asyncio.to_thread(code_archive.pack, self._folder, self._archive_path)
            self._archive = asyncio.create_task(packing)
        try:
            archive = await asyncio.shield(self._archive)
        except CodeError as error:
            raise TransferError(str(error)) from None
        await transfers.put(Code(str(self._folder), archive.digest, archive.size), archive.path)

    async def fetch_checkpoint(self, transfers: Transfers, path: str) -> Path | None:
        """Fetch a checkpoint that a worker has written; returns where it is, None if a newer one is there.

        Raises:
            TransferError: it cannot be fetched.
        """
        below = self._below(transfers, path)
        folder = str(below.parent)
        self._newest[folder] = path
        try:
            async with self._is_fetching:
                if self._newest[folder] != path:
                    return None
                return await checkpoint_transfer.fetch(
                    transfers, str(below), self.output / folder, self._keep
                )
        except OSError as error:
            raise TransferError(f"{self.output / folder}: {error.strerror or error}") from None

    async def put_checkpoint(self, transfers: Transfers, folder: str) -> str | None:
        """Bring the newest checkpoint to where a worker looks for it; returns its name, None without one.

        Raises:
            TransferError: it cannot be brought.
        """
        below = self._below(transfers, folder)
        return await checkpoint_transfer.put_newest(transfers, self.output / below, str(below))

    async def fetch_results(self, transfers: Transfers, fetched: set[str]) -> None:
        """Fetch what workers have written, but for files that `fetched` names, and name them there.

        Raises:
            TransferError: something cannot be fetched.
        """
        for path, size in (await transfers.list()).items():
            target, parts = self.output / path, PurePosixPath(path).parts
            is_log = parts[:1] == ("log",) and target.exists()  # the launcher's own
            if path in fetched or is_log or ".." in parts or parts[:1] == ("/",):
                continue
            try:
                await _fetch_file(transfers, path, target, size)
            except OSError as error:
                raise TransferError(f"{target}: {error.strerror or error}") from None
            fetched.add(path)

    def _below(self, transfers: Transfers, path: str) -> PurePosixPath:
        """A path of the host, relative to its folder."""
        try:
            below = PurePosixPath(path).relative_to(transfers.folder or "")
        except ValueError:
            below = PurePosixPath("..")
        if ".." in below.parts:
            raise TransferError(f"{path} is not below {transfers.folder}")
        return below


async def _fetch_file(transfers: Transfers, path: str, target: Path, size: int) -> None:
    """Fetch a file, which nothing changes any more."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.part")
    try:
        with beside.open("wb") as out:
            while out.tell() < size and (data := await transfers.fetch(path, out.tell())):
                out.write(data)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
