"""What the service asks a running launcher, and what the launcher answers: messages without I/O.

Messages are JSON objects, one a line, of at most `MAX_LINE` bytes::

    {"version": 1, "id": "stop-1700000000.5", "request": "stop", "at_once": false}
    {"version": 1, "id": "stop-1700000000.5", "reply": "accepted"}
    {"version": 1, "id": null, "reply": "refused", "reason": "..."}

An accepted request is carried out, without further questions. One whose id is known is accepted again and
carried out no second time, so that a client may repeat it until it has the answer.
"""

import json
from dataclasses import dataclass
from typing import Any

VERSION = 1

MAX_LINE = 4096
"""Bytes of a message, without its newline."""

MAX_ID = 100
"""Characters of a request's id."""

MAX_REMEMBERED_IDS = 64
"""Ids of accepted requests that are remembered."""


@dataclass(frozen=True)
class Pause:
    """Have the state saved and all workers leave."""

    id: str


@dataclass(frozen=True)
class Stop:
    """End the job; `at_once`: kill its workers without a grace."""

    id: str
    at_once: bool = False


Request = Pause | Stop


@dataclass(frozen=True)
class Accepted:
    """The request has been taken in."""

    id: str


@dataclass(frozen=True)
class Refused:
    """The request changes nothing, because of `reason`; without an id if it could not be read."""

    id: str | None
    reason: str


Reply = Accepted | Refused


def write(message: Request | Reply) -> bytes:
    """The line of a message."""
    content: dict[str, Any]
    match message:
        case Pause():
            content = {"request": "pause"}
        case Stop(_, at_once):
            content = {"request": "stop", "at_once": at_once}
        case Accepted():
            content = {"reply": "accepted"}
        case Refused(_, reason):
            content = {"reply": "refused", "reason": reason}
    return json.dumps({"version": VERSION, "id": message.id, **content}).encode() + b"\n"


def read_request(line: bytes) -> Request | Refused:
    """The request in a line; what there is to answer if it is none."""
    content = _content(line)
    match content:
        case {"version": int(version)} if version != VERSION:
            return Refused(None, f"version {version!s:.20}: this launcher understands version {VERSION}")
        case {"version": int(), "id": str(id_)} if not 0 < len(id_) <= MAX_ID:
            return Refused(None, f"an id of {len(id_)} characters: expected 1 to {MAX_ID}")
        case {"version": int(), "id": str(id_), "request": "pause"}:
            return Pause(id_)
        case {"version": int(), "id": str(id_), "request": "stop", "at_once": bool(at_once)}:
            return Stop(id_, at_once)
        case {"version": int(), "id": str(id_), "request": str(request)} if request != "stop":
            return Refused(id_, f"request {request[:40]!r}: expected 'pause' or 'stop'")
    return Refused(None, f"{line[:40].decode(errors='replace')!r}: expected a request as a JSON object")


def read_reply(line: bytes) -> Reply | None:
    """The reply in a line; None if it is none."""
    match _content(line):
        case {"version": 1, "id": str(id_), "reply": "accepted"}:
            return Accepted(id_)
        case {"version": 1, "id": None | str() as id_, "reply": "refused", "reason": str(reason)}:
            return Refused(id_, reason)
    return None


class Requests:
    """Answers requests, and tells new ones from those that are repeated."""

    def __init__(self) -> None:
        self._accepted: dict[str, None] = {}

    def answer(self, line: bytes) -> tuple[Reply, Request | None]:
        """The reply to a line, and the request in it that is to be carried out, if it is new."""
        request = read_request(line)
        if isinstance(request, Refused):
            return request, None
        is_new = request.id not in self._accepted
        self._accepted[request.id] = None
        if len(self._accepted) > MAX_REMEMBERED_IDS:
            del self._accepted[next(iter(self._accepted))]
        return Accepted(request.id), request if is_new else None


def _content(line: bytes) -> object:
    try:
        return json.loads(line.decode()) if len(line) <= MAX_LINE else None
    except (ValueError, RecursionError):
        return None
