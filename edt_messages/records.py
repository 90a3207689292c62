"""Records, which are frozen dataclasses, as JSON objects: one writer and one reader for all classes.

Others write what is read here. So the reader checks every field, and refuses numbers outside the bounds of
their types.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, Never, get_args, get_origin, get_type_hints

Number = Annotated[int, (0, 2**31)]
Count = Annotated[int, (1, 2**31)]
Serial = Annotated[int, (0, 2**53)]
Seconds = Annotated[float, (0, 2**53)]
"""Numbers, with their least and one that is too large, so that every database can store them."""

Value = float | int | str | bool
"""What scripts may report. Floats may be inf and nan, which Python's JSON has as `Infinity` and `NaN`."""

INTEGERS = range(-(2**63), 2**63)
"""The integers that scripts may report."""

VALUES_BYTES = 2**15
"""Bytes that all values of a message may take as JSON, with their names; they fit into a line of events."""

Convert = Callable[[Any], Any]


def content(record: Any) -> dict[str, Any]:
    """The fields of a record, by their names in JSON: those of Python without a trailing underscore."""
    return {field.name.rstrip("_"): getattr(record, field.name) for field in fields(record)}


def reader(cls: Any) -> Convert:
    """A function that makes a record of a JSON object, or raises ValueError; unknown fields are ignored.

    The checks are made from the types of the fields, once: numbers with bounds, plain types, records,
    ``Mapping[str | Serial, ...]``, ``tuple[X, ...]`` with or without bounds of its length, ``tuple[X, Y]``,
    and any of these or None. The error names the field that is wrong.
    """
    types, table = get_type_hints(cls, include_extras=True), []
    for field in fields(cls):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        table.append((field.name, field.name.rstrip("_"), _converter(types[field.name]), default))

    def convert_all(written: Any) -> Any:
        get = _checked(written, dict).get
        record = cls.__new__(cls)  # the constructor of a frozen class takes three times as long
        key = ""
        try:
            for name, key, convert, default in table:
                record.__dict__[name] = convert(get(key, default))
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
        return record

    return convert_all


def _converter(kind: Any) -> Convert:
    """A function that returns a value of that type, or raises ValueError; it is given `MISSING` for none."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounded = _number if args[0] in (int, float) else _of_length
        return bounded(args[0], *args[1])
    if NoneType in args:
        inner = _converter(args[0])
        return lambda value: None if value is None or value is MISSING else inner(value)
    if origin is tuple:
        return _tuple(args)
    if origin is Mapping:
        return _mapping(*args)
    return reader(kind) if is_dataclass(kind) else lambda value: _checked(value, kind)


def _number(kind: type[int] | type[float], low: int, high: int) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is kind and low <= value < high:
            return value
        if type(value) is int and low <= value < high:  # where a float is wanted
            return kind(value)
        _refuse(value, f"{kind.__name__} from {low} to less than {high}")

    return convert


def _of_length(kind: Any, low: int, high: int) -> Convert:
    inner = _converter(kind)

    def convert(value: Any) -> Any:
        items = inner(value)
        return items if low <= len(items) < high else _refuse(value, f"{low} to less than {high} items")

    return convert


def _tuple(items: tuple[Any, ...]) -> Convert:
    if items[-1] is Ellipsis:
        inner = _converter(items[0])
        return lambda value: tuple(map(inner, _checked(value, list, tuple)))
    converters = tuple(map(_converter, items))

    def convert_each(value: Any) -> Any:
        if len(_checked(value, list, tuple)) != len(converters):
            _refuse(value, f"{len(converters)} items")
        return tuple(convert(item) for convert, item in zip(converters, value, strict=True))

    return convert_each


def _mapping(key: Any, item: Any) -> Convert:
    if item == Value:
        return _values
    of_item, of_key = _converter(item), str if key is str else _converter(key)
    as_key = str if key is str else int
    return lambda written: {
        of_key(as_key(name)): of_item(value) for name, value in _checked(written, dict).items()
    }


def _values(written: Any) -> Any:
    """All in one go: they are read most often."""
    length = 0
    for name, value in _checked(written, dict).items():
        length += len(name)
        kind = type(value)
        if kind is str:
            length += len(value)
        elif not (kind is float or kind is bool or (kind is int and value in INTEGERS)):
            _refuse(value, "a number of 64 bits, a text or a boolean")
    return written if length <= VALUES_BYTES else _refuse(written, f"{VALUES_BYTES:,} characters at most")


def _checked(value: Any, *types: type) -> Any:
    return value if type(value) in types else _refuse(value, " or ".join(each.__name__ for each in types))


def _refuse(value: Any, expected: str) -> Never:
    """Refuse a value. What is in objects and lists, an environment for instance, is not told."""
    if value is MISSING:
        raise ValueError("missing")
    told = repr(value)[:40] if value is None or type(value) in get_args(Value) else type(value).__name__
    raise ValueError(f"{told}, expected {expected}")
