"""The events of a job: read from horovodrun's pipe, kept in a file."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edt_launch.core.appender import Appender, Complain

Event = Mapping[str, Any]


class EventStream:
    """JSON objects, one a line, from whatever pieces of them have been read."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Event | str]:
        """The events that `data` completes; a line that is none is given as text."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            try:
                event = json.loads(text)
            except (ValueError, RecursionError):
                yield text
                continue
            yield event if isinstance(event, dict) and isinstance(event.get("event"), str) else text


class EventLog:
    """Appends events to a file, each at once, so that others can follow it.

    What the file has already stays, but for half a line that a killed launcher has left at its end.

    Args:
        path: the file.
        complain: told when it cannot be written; events are lost then.

    Raises:
        OSError: what the file has cannot be read.
    """

    def __init__(self, path: Path, complain: Complain) -> None:
        _drop_half_line(path)
        self._file = Appender(path, complain)

    def write(self, event: Event) -> None:
        """Append an event."""
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop_half_line(path: Path) -> None:
    try:
        with path.open("rb+") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)
    except FileNotFoundError:
        return


def new(event: str, **content: Any) -> Event:
    """An event of the launcher's own, that happens now."""
    return {"event": event, "time": time.time(), **content}
