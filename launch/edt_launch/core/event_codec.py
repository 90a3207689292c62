"""Events as JSON: one reader and one writer for all kinds.

Jobs can write into their `events.jsonl`. So the reader checks every field, and raises nothing: what is not as
its class says is no event.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, Never, get_args, get_origin, get_type_hints

from edt_launch.core.events import KINDS, Event
from edt_launch.core.worker_events import Value


def write(event: Event) -> dict[str, Any]:
    """The JSON object of an event."""
    return {"event": event.kind, **{name.rstrip("_"): value for name, value in asdict(event).items()}}


def read(written: Mapping[str, Any]) -> Event | None:
    """The event of a JSON object; None if its kind is unknown or a field is missing or wrong."""
    kind = written.get("event")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    try:
        return reader(written) if reader is not None else None
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


_decode = json.JSONDecoder().raw_decode  # a third faster than json.loads


# The reader of each kind is made from the types of its fields, once.

_Convert = Callable[[Any], Any]
_VALUES = frozenset(get_args(Value))


def _reader(cls: Any) -> _Convert:
    types, table = get_type_hints(cls, include_extras=True), []
    for field in fields(cls):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        table.append((field.name, field.name.rstrip("_"), _converter(types[field.name]), default))

    def convert_all(written: Any) -> Any:
        get = _checked(written, dict).get
        event = cls.__new__(cls)  # the constructor of a frozen class takes three times as long
        event.__dict__.update([(name, convert(get(key, default))) for name, key, convert, default in table])
        return event

    return convert_all


def _converter(kind: Any) -> _Convert:
    """A function that returns a value of that type, or raises ValueError; it is given `MISSING` for none."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _number(args[0], *args[1])
    if NoneType in args:
        inner = _converter(args[0])
        return lambda value: None if value is None or value is MISSING else inner(value)
    if origin is tuple:
        inner = _converter(args[0])
        return lambda value: tuple(map(inner, _checked(value, list, tuple)))
    if origin is Mapping:
        return _mapping(*args)
    return _reader(kind) if is_dataclass(kind) else lambda value: _checked(value, kind)


def _number(kind: type[int] | type[float], low: int, high: int) -> _Convert:
    def convert(value: Any) -> Any:
        if type(value) is kind and low <= value < high:
            return value
        if type(value) is int and low <= value < high:  # where a float is wanted
            return kind(value)
        raise ValueError

    return convert


def _mapping(key: Any, item: Any) -> _Convert:
    if item == Value:  # all in one go: it is read most often
        return lambda value: (
            value if _VALUES.issuperset(map(type, _checked(value, dict).values())) else _refuse()
        )
    of_item, of_key = _converter(item), str if key is str else _converter(key)
    as_key = str if key is str else int
    return lambda written: {
        of_key(as_key(name)): of_item(value) for name, value in _checked(written, dict).items()
    }


def _checked(value: Any, *types: type) -> Any:
    return value if type(value) in types else _refuse()


def _refuse() -> Never:
    raise ValueError


_READERS = {kind: _reader(cls) for kind, cls in KINDS.items()}
