"""A client of Horovod's elastic driver, through the HTTP server of Horovod's rendezvous.

Its protocol is that of ``horovod/runner/elastic/rendezvous.py`` and ``horovod/runner/http/http_server.py`` of
0.28.1: a store of keys, which the driver empties whenever it makes new assignments, and one scope whose keys
it answers itself. Requests show the job's token, which a patch in `native/horovod` adds to the protocol.
"""

import http.client
import select
import socket

from edt_hvd.errors import CoordinatorLostError
from edt_messages.keepalive import end_with_peer

ANSWER_TIMEOUT = 30.0
"""Seconds that the driver has for an answer, but for that to the question for an assignment."""


class HorovodDriver:
    """The driver of the job.

    Its methods raise `CoordinatorLostError` when there is no answer.

    Args:
        address: ``host:port`` of its HTTP server.
        token: of the job; None if requests need none.
        timeout: seconds that it has for an answer which waits for nobody.
    """

    def __init__(self, address: str, token: str | None = None, timeout: float = ANSWER_TIMEOUT) -> None:
        self.address = address
        self._timeout = timeout
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    @property
    def port(self) -> int:
        """The port of its HTTP server, where Gloo meets, too."""
        return int(self.address.rpartition(":")[2])

    def next_assignment(self, host: str, slot: int) -> str:
        """Ask for the next assignment: six numbers, the rank -1 for none.

        The answer comes when all members of the present world have asked, or have ended. Meanwhile the driver
        is asked something else now and then, which it answers at once unless it is lost.
        """
        answer = self._request("GET", f"/rank_and_size/{host}:{slot}", waits=True)
        if answer is None:
            raise CoordinatorLostError(self.address, "it knows of no assignments", "horovodrun")
        return answer

    def get(self, scope: str, key: str) -> str | None:
        """The value of a key; None if nobody has put one."""
        return self._request("GET", f"/{scope}/{key}")

    def put(self, scope: str, key: str, value: str) -> None:
        """Put a value for all workers to see, until there are new assignments."""
        self._request("PUT", f"/{scope}/{key}", value)

    def _request(self, method: str, path: str, body: str | None = None, waits: bool = False) -> str | None:
        connection = http.client.HTTPConnection(self.address, timeout=self._timeout)
        try:
            connection.connect()
            end_with_peer(connection.sock)
            connection.request(method, path, body, self._headers)
            while waits and not _is_readable(connection.sock, self._timeout):
                self.get("edt.alive", "?")
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise CoordinatorLostError(
                self.address, str(error) or type(error).__name__, "horovodrun"
            ) from error
        finally:
            connection.close()
        if response.status == http.client.NOT_FOUND:
            return None
        if response.status != http.client.OK:
            raise CoordinatorLostError(self.address, f"it answers {response.status}", "horovodrun")
        return text


def _is_readable(connection: socket.socket, timeout: float) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(timeout * 1000))
