"""The files that are under way to and from the host of one agent; in the thread of the agents."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from edt_launch.agent import protocol
from edt_launch.agent.protocol import (
    MAX_PIECE,
    Code,
    Fetch,
    Fetched,
    List,
    Listed,
    Piece,
    Put,
    Stored,
    Want,
)


class TransferError(Exception):
    """A file has not come or gone; the text says why."""


class Transfers:
    """Files by their paths, which are relative to the folder of the host. Orders are handed to `send`."""

    def __init__(self, send: Callable[[protocol.Order], None]) -> None:
        self.folder: str | None = None
        """What stands on the host for the output directory; None if the host sees that."""
        self._send = send
        self._sources: dict[str, Path] = {}
        self._awaited: dict[str, asyncio.Future[bytes]] = {}
        self._listed: dict[str, int] = {}
        self._lost: str | None = None

    async def put(self, order: Code | Put, source: Path) -> None:
        """Have the host store the content of a file.

        Raises:
            TransferError: it cannot, or is lost.
        """
        path = order.path if isinstance(order, Put) else protocol.CODE
        self._sources[path] = source
        try:
            await self._answer(path, order)
        finally:
            del self._sources[path]

    async def fetch(self, path: str, offset: int = 0) -> bytes:
        """The piece of a file that begins at `offset`; empty at its end.

        Raises:
            TransferError: it cannot be read, or the host is lost.
        """
        return await self._answer(path, Fetch(path, offset))

    async def list(self) -> dict[str, int]:
        """The files of the host's folder, checkpoints excepted, with their sizes in bytes.

        Raises:
            TransferError: the host is lost.
        """
        await self._answer("", List())
        return self._listed

    def take(self, report: Want | Stored | Fetched | Listed) -> None:
        """The agent has said something about files."""
        if isinstance(report, Listed):
            self._listed = {path: int(size) for path, size in report.files.items() if size.isdecimal()}
            if (listing := self._awaited.pop("", None)) is not None and not listing.done():
                listing.set_result(b"")
            return
        if isinstance(report, Want):
            self._send(Piece(report.path, self._piece(report)))
            return
        awaited = self._awaited.pop(report.path, None)
        if awaited is None or awaited.done():
            return
        if report.error is not None:
            awaited.set_exception(TransferError(report.error))
        else:
            awaited.set_result(report.data if isinstance(report, Fetched) else b"")

    def close(self, reason: str) -> None:
        """The host is lost: nothing more comes or goes."""
        self._lost = reason
        while self._awaited:
            _, awaited = self._awaited.popitem()
            if not awaited.done():
                awaited.set_exception(TransferError(reason))

    async def _answer(self, path: str, order: protocol.Order) -> bytes:
        if self._lost is not None:
            raise TransferError(self._lost)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited[path] = answer
        self._send(order)
        return await answer

    def _piece(self, want: Want) -> bytes:
        """What is asked for; nothing if the file cannot be read, or is not one that goes there."""
        source = self._sources.get(want.path)
        if source is None or want.offset < 0:
            return b""
        try:
            with source.open("rb") as file:
                file.seek(want.offset)
                return file.read(MAX_PIECE)
        except OSError:
            return b""
