"""``python -m edt_launch.agent.dial_back HOST``: connects an agent of this host to its launcher.

The invitation is read from the variable EDT_INVITATION, from a file, or from standard input. The connection
is TLS; the agent itself is a child, as it is under ssh. With ``--stay`` the host can be used again when its
agent has ended, until the launcher has.
"""

import argparse
import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
import signal
import ssl
import sys
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edt_launch.agent import encoding, protocol
from edt_launch.agent.network.invitation import (
    MAX_LINE,
    VARIABLE,
    Answer,
    Greeting,
    Invitation,
    InvitationError,
    Outcome,
)
from edt_launch.core.errors import ExitCode
from edt_launch.core.system.reserved_variables import is_of_launcher
from edt_messages.keepalive import end_with_peer

AGENT = (sys.executable, "-P", "-m", "edt_launch.agent")

CHUNK = 2**16

CONNECT_TIMEOUT = 10.0
"""Seconds that an address has to answer."""

ANSWER_TIMEOUT = 15.0
"""Seconds that the launcher has to answer a greeting."""

RETRY_INTERVAL = 1.0
"""Seconds until a launcher that could not be reached is tried again."""

PATIENCE, LONG_PATIENCE = 60.0, 600.0
"""Seconds for which it is tried again; the longer ones with `--stay`."""

PEER_TIMEOUT = 15.0
"""Seconds after which a connection fails whose other end acknowledges nothing."""

LAST_WORDS = 20
"""Lines of an agent that are told to the launcher at its end."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class RefusedError(Exception):
    """The launcher does not take this host; the message says why."""


class UnreachableError(Exception):
    """No address leads to the launcher. `is_gone`: nobody, or somebody else, listens there."""

    def __init__(self, reason: str, is_gone: bool) -> None:
        super().__init__(reason)
        self.is_gone = is_gone


@dataclass(frozen=True)
class End:
    """How an agent that dials back has ended.

    Attributes:
        exit_code: the launcher's, or that of a signal, as a shell has it; None if the launcher has not said.
        has_reached: whether it has been connected to the launcher.
    """

    exit_code: int | None
    has_reached: bool


def client_context() -> ssl.SSLContext:
    """TLS as a client; who the server is, its fingerprint tells."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Session:
    """A connection to the launcher, and later the agent that it connects."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def wanted(self) -> bytes | Outcome:
        """Wait until an agent is wanted; its first orders, or nothing if the launcher wants none any more."""
        first = await _read(self._reader)
        try:
            return Outcome.parse(first)
        except InvitationError:
            return first

    async def serve(self, first: bytes, environment: dict[str, str], leaving: asyncio.Event) -> None:
        """Connect an agent that gets these orders first, until it ends, or this host is `leaving`."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *AGENT, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        last_words: deque[str] = deque(maxlen=LAST_WORDS)
        process.stdin.write(first)
        orders = asyncio.create_task(self._pass_on(self._reader, process.stdin))
        said = asyncio.create_task(_keep(process.stderr, last_words))
        leave = asyncio.create_task(self._leave_when(leaving, process.stdin))
        await self._pass_on(process.stdout, self._writer)
        exit_code = await process.wait()
        leave.cancel()
        orders.cancel()
        await asyncio.wait([said], timeout=1.0)
        said.cancel()
        with contextlib.suppress(OSError):
            self._writer.write(encoding.write(protocol.Left(exit_code, tuple(last_words))))
            await self._writer.drain()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy a stream to its end, and read on if nobody takes it any more."""
        with contextlib.suppress(OSError):
            while data := await _read(reader):
                writer.write(data)
                await writer.drain()
        if writer is not self._writer:
            writer.close()
        while await _read(reader):
            pass

    async def _leave_when(self, leaving: asyncio.Event, orders: asyncio.StreamWriter) -> None:
        """Let the launcher lose this host, and then the agent its launcher: it ends its workers."""
        await leaving.wait()
        self._writer.transport.abort()
        orders.close()

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), 1.0)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:  # a broken connection has no more to say
        return b""


async def _keep(stream: asyncio.StreamReader, last_words: deque[str]) -> None:
    with contextlib.suppress(ValueError):  # a line that is too long ends it
        while line := await stream.readline():
            text = line.decode(errors="replace").rstrip()
            last_words.append(text)
            print(text, file=sys.stderr, flush=True)


async def connect(invitation: Invitation, greeting: Greeting) -> Session:
    """Connect to the launcher, over the first address that leads to it.

    Raises:
        UnreachableError: none does.
        RefusedError: the launcher does not take this host.
    """
    reasons, is_gone = [], False
    for address in invitation.addresses:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await asyncio.open_connection(address, invitation.port, ssl=client_context())
        except (OSError, TimeoutError) as error:
            is_gone |= isinstance(error, ConnectionRefusedError)
            reasons.append(f"{address}: {str(error) or 'no answer'}")
            continue
        end_with_peer(writer.get_extra_info("socket"), PEER_TIMEOUT)
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        found = hashlib.sha256(certificate or b"").hexdigest()
        if not hmac.compare_digest(found, invitation.fingerprint):
            writer.close()
            is_gone = True
            reasons.append(f"{address}: another certificate than that of the invitation")
            continue
        await _greet(reader, writer, greeting)
        return Session(reader, writer)
    raise UnreachableError("; ".join(reasons), is_gone)


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, greeting: Greeting) -> None:
    writer.write(f"{greeting.text}\n".encode())
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            line = await reader.readline()
        answer = Answer.parse(line[:MAX_LINE])
    except (OSError, ValueError, TimeoutError) as error:
        writer.close()
        raise UnreachableError(f"the launcher does not answer: {error!r}", is_gone=False) from None
    if answer.refused:
        writer.close()
        raise RefusedError(answer.refused)


async def run(
    invitation: Invitation,
    host: str,
    environment: dict[str, str],
    *,
    stays: bool,
    leaves: bool = False,
    number: int = 0,
    slots: int = 0,
    devices: Sequence[str] = (),
) -> End:
    """Connect an agent of this host; with `stays` again and again, until the launcher has ended.

    `slots` and `devices` are what the host has, if the launcher does not know that; `number` orders hosts. A
    signal ends it while it has no agent; an agent ends with its launcher, and with `leaves` at a signal, too.

    Raises:
        RefusedError: the launcher does not take this host.
        UnreachableError: it cannot be reached.
    """
    stopped, received = asyncio.Event(), list[int]()
    leaving = stopped if leaves else asyncio.Event()

    def stop(signal_number: int) -> None:
        received.append(signal_number)
        stopped.set()

    for each in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(each, stop, each)
    has_reached, instance = False, secrets.token_hex(8)
    greeting = Greeting(invitation.token, host, protocol.VERSION, instance, slots, list(devices), number)
    patience = LONG_PATIENCE if stays else PATIENCE
    deadline = time.monotonic() + patience
    while not stopped.is_set():
        try:
            session = await connect(invitation, greeting)
        except UnreachableError as error:
            if received or (has_reached and error.is_gone):
                break
            if error.is_gone or time.monotonic() >= deadline:
                raise
            await _first_of(asyncio.sleep(RETRY_INTERVAL), stopped.wait())
            continue
        has_reached = True
        try:
            orders = await _first_of(session.wanted(), stopped.wait())
            if isinstance(orders, Outcome):
                return End(orders.exit_code, has_reached)
            if isinstance(orders, bytes) and orders:
                await session.serve(orders, environment, leaving)
        finally:
            await session.close()
        if not stays or not orders:
            break
        deadline = time.monotonic() + patience
    return End(128 + received[0] if received else None, has_reached)


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> Any:
    """What the first of them returns; the others are cancelled."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return next(task for task in tasks if task in done).result()


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m edt_launch.agent.dial_back", description="Connect this host to a launcher."
    )
    parser.add_argument("host", help="the name by which the launcher knows this host")
    parser.add_argument("file", nargs="?", help=f"with the invitation; else {VARIABLE}, or standard input")
    parser.add_argument("--stay", action="store_true", help="until the launcher has ended")
    given = parser.parse_args(words)
    environment = {name: value for name, value in os.environ.items() if not is_of_launcher(name)}
    try:
        invitation = Invitation.parse(_text(given.file))
    except (OSError, InvitationError) as error:
        print(f"edt agent: cannot read the invitation: {error}", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    try:
        asyncio.run(run(invitation, given.host, environment, stays=given.stay))
    except (RefusedError, UnreachableError) as error:
        what = "refuses this host" if isinstance(error, RefusedError) else "cannot be reached"
        print(f"edt agent: {given.host}: the launcher {what}: {error}", file=sys.stderr)
        sys.exit(ExitCode.NOT_STARTED)


def _text(file: str | None) -> str:
    if file is not None:
        return Path(file).read_text()
    if (text := os.environ.get(VARIABLE)) is not None:
        return text
    return sys.stdin.readline()


if __name__ == "__main__":
    main()
