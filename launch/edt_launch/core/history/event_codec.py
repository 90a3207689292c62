"""Events as JSON: one reader and one writer for all kinds.

Jobs can write into their `events.jsonl`. So the reader checks every field, and raises nothing: what is not as
its class says is no event.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from edt_launch.core.files.growing_file import Line
from edt_launch.core.history.events import KINDS, Event
from edt_messages.records import reader


def write(event: Event) -> dict[str, Any]:
    """The JSON object of an event."""
    return {"event": event.kind, **{name.rstrip("_"): value for name, value in asdict(event).items()}}


def read(written: Mapping[str, Any]) -> Event | None:
    """The event of a JSON object; None if its kind is unknown or a field is missing or wrong."""
    kind = written.get("event")
    convert = _READERS.get(kind) if isinstance(kind, str) else None
    try:
        return convert(written) if convert is not None else None
    except ValueError:
        return None


def read_line(line: bytes) -> Event | None:
    """The event of a line of `events.jsonl`; None if it is none, see `read`."""
    text = line.decode(errors="replace").strip()
    try:
        written, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return read(written) if isinstance(written, dict) and end == len(text) else None


def events_of(lines: Iterable[Line]) -> Iterator[Event]:
    """The events of lines; those that are none are left out."""
    return filter(None, (read_line(line.text) for line in lines))


_decode = json.JSONDecoder().raw_decode  # a third faster than json.loads


_READERS = {kind: reader(cls) for kind, cls in KINDS.items()}
