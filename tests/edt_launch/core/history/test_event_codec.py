"""Events as JSON."""

import inspect
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.history import events
from edt_launch.core.history.event_codec import read, read_line, write
from edt_messages.records import INTEGERS


@pytest.mark.parametrize("line", Path(__file__).with_name("events.jsonl").read_bytes().splitlines())
def test_what_is_in_files_is_read_and_written_as_it_was(line: bytes) -> None:
    event, written = read_line(line), json.loads(line)
    assert (type(event), event.time) == (events.KINDS[written["event"]], written["time"])
    again = json.loads(json.dumps(write(event)))
    assert again == written
    assert list(again)[:2] == ["event", "time"]


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, within its bounds."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        low, high = args[1]
        return st.integers(low, high - 1) if args[0] is int else st.floats(low, high, exclude_max=True)
    if origin is Mapping:
        return st.dictionaries(*map(values, args), max_size=3)
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if args:
        return st.one_of([values(arg) for arg in args])
    if is_dataclass(kind):
        types = get_type_hints(kind, include_extras=True)
        return st.builds(kind, **{field.name: values(types[field.name]) for field in fields(kind)})
    if kind is int:  # of what scripts report
        return st.integers(INTEGERS.start, INTEGERS.stop - 1)
    return st.floats(allow_nan=False) if kind is float else st.from_type(kind)


@given(st.sampled_from(list(events.KINDS.values())).flatmap(values))
def test_every_event_is_read_as_it_was_written(event: events.Event) -> None:
    assert read_line(json.dumps(write(event)).encode()) == event


PROGRESS = {"event": "progress", "time": 1.0, "step": 1, "size": 1, "values": {}}


@pytest.mark.parametrize(
    "written",
    [
        *({}, {"event": "of another time"}, {"event": 3}, {"event": ["world"]}, {"event": "progress"}),
        *(PROGRESS | {"step": wrong} for wrong in (-1, 2**53, 10**400, 1.0, True, "1", None, [1])),
        *(PROGRESS | {"time": wrong} for wrong in (-1.0, 10**400, math.inf, math.nan, "now", None)),
        *(PROGRESS | {"values": wrong} for wrong in (None, [], "x", {"loss": [1]}, {"loss": None})),
        *(
            {"event": "world", "generation": 1, "size": 1, "ranks": wrong}
            for wrong in ({"x": 0}, {"-1": 0}, [0])
        ),
        *({"event": "launched", "command": wrong} for wrong in ("a", [1], {"a": 1})),
        {"event": "ended", "exit_code": 2**31},
    ],
)
def test_what_is_not_as_its_class_says_is_no_event(written: dict[str, Any]) -> None:
    assert read(written) is None


def table() -> str:
    """The table in docs/reference/events.md, from the docstrings."""
    return "\n".join(
        ["| event | what has happened | fields |", "|---|---|---|", *map(_row, sorted(events.KINDS.items()))]
    )


def _row(item: tuple[str, type[events.Event]]) -> str:
    kind, cls = item
    what, _, about = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:")
    said = dict(re.findall(r"(\w+): (.+)", about))
    names = [
        f"`{field.name.rstrip('_')}`" + (f": {said[field.name].rstrip('.')}" if field.name in said else "")
        for field in fields(cls)
        if field.name != "time"
    ]
    separator = "; " if said else ", "
    return f"| `{kind}` | {' '.join(what.split())} | {separator.join(names)} |"


def test_the_documentation_lists_all_events() -> None:
    written = Path("docs/reference/events.md").read_text()
    assert table() in written, f"the table in docs/reference/events.md is to be:\n{table()}"
