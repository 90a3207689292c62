"""Keeps a warm server: another one takes the place of one that has ended."""

import os
import selectors
import sys
from collections.abc import Callable, Mapping, Sequence

from edt_launch.agent.protocol import Warm
from edt_launch.agent.warm.forkable import Program
from edt_launch.agent.warm.server import Request, WarmServer, open_log

ATTEMPTS = 2
"""Warm servers that are asked for a worker: one may be ending at the very moment that it is asked."""


class WarmSupervisor:
    """Starts the warm servers of a program, one at a time.

    What one says about its imports is sent. Whoever reaps the children of this process reaps them, too.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        send: Callable[[Warm], None],
        program: Program,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str | None,
        log: str | None,
    ) -> None:
        self._selector = selector
        self._send = send
        self._program = program
        self._command, self._environment, self._directory, self._log = command, environment, directory, log
        self._server: WarmServer | None = None
        self._failed = 0
        """Servers that have ended before they could fork."""

    def start(self) -> bool:
        """Start a server, unless too many have failed; whether there is one."""
        if self._server is not None:
            return True
        if self._failed >= ATTEMPTS:
            return False
        log = open_log(self._log)
        try:
            server = WarmServer(self._program, self._command, self._environment, self._directory, log)
        except OSError as error:
            print(f"edt agent: no warm server: {error}", file=sys.stderr, flush=True)
            return False
        finally:
            os.close(log)
        self._server = server
        self._selector.register(server.channel, selectors.EVENT_READ, self._hear)
        return True

    def request(self, environment: Mapping[str, str], command: Sequence[str]) -> Request | None:
        """Ask for a worker; None if there is no server to ask."""
        if not self.start():
            return None
        assert self._server is not None
        try:
            return self._server.request(environment, command)
        except OSError:  # it is gone
            self._close()
            return None

    def kill(self) -> None:
        """Kill the server: its workers become children of this process."""
        if self._server is not None:
            self._server.process.kill()
            self._close()

    def _hear(self) -> None:
        if self._server is None:  # closed in the same turn
            return
        said = self._server.hear()
        if said is None:
            self._failed += not self._server.is_ready
            self._close()
            return
        for imported in said:
            self._send(Warm(self._server.process.pid, **vars(imported)))
        if any(imported.refused is not None for imported in said):
            self._failed = ATTEMPTS
            self._close()

    def _close(self) -> None:
        assert self._server is not None
        self._server.process.returncode = 0  # whoever reaps all children waits for it
        self._selector.unregister(self._server.channel)
        self._server.channel.close()
        self._server = None
