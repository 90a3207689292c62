"""A decision's memory as plain values, for callers that keep it in a file or a database."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from edt_launch.allocator.model import Memory


def dump(memory: Memory) -> dict[str, Any]:
    """The memory as dictionaries, strings and numbers, fit for JSON."""
    return asdict(memory)


def load(values: Mapping[str, Any]) -> Memory:
    """The memory that `dump` has made values of; what is unknown is left out, what is missing is empty."""
    known = {field.name for field in fields(Memory)}
    memory = Memory(**{name: value for name, value in values.items() if name in known})
    return replace(memory, pinned=tuple(memory.pinned))  # JSON knows lists only
