"""Messages of agents and warm servers, and their lines."""

import json
from typing import Any

import pytest

from edt_messages import forking
from edt_messages.codec import MessageError
from edt_messages.forking import Message, decode, encode

REQUEST: dict[str, Any] = {
    "script": "train.py",
    "module": None,
    "arguments": ["-e", "3"],
    "command": ["python", "train.py", "-e", "3"],
    "directory": "/a b",
    "environment": {"OWN": "a 'b' \udcff\n"},
    "umask": 0o022,
    "ignored": [1],
}
LINES: list[tuple[Message, dict[str, Any]]] = [
    (
        forking.Fork(
            "train.py",
            None,
            ("-e", "3"),
            ("python", "train.py", "-e", "3"),
            "/a b",
            {"OWN": "a 'b' \udcff\n"},
            0o022,
            (1,),
        ),
        {"type": "fork", **REQUEST},
    ),
    (
        forking.Imported(1.5, ("torch",), 100, None),
        {"type": "imported", "seconds": 1.5, "imports": ["torch"], "private": 100, "refused": None},
    ),
    (forking.Ready(), {"type": "ready"}),
    (forking.Forked(42), {"type": "forked", "pid": 42}),
    (forking.Exited(9), {"type": "exited", "status": 9}),
]
NAMES = [content["type"] for _, content in LINES]


@pytest.mark.parametrize("message, content", LINES, ids=NAMES)
def test_a_message_is_its_line(message: Message, content: dict[str, Any]) -> None:
    line = json.dumps(content).encode() + b"\n"
    assert encode(message) == line
    assert decode(line) == message


def test_all_messages_are_above() -> None:
    assert sorted(NAMES) == sorted(forking._codec._readers)


def test_a_request_has_room_for_an_environment() -> None:
    large = forking.Fork(None, "x", (), (), "/", {"LARGE": "x" * 2**21}, 0)
    assert decode(encode(large)) == large


@pytest.mark.parametrize("wrong", [{"environment": {"A": 1}}, {"arguments": None}, {"umask": -1}])
def test_a_request_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(MessageError, match=f"is no message: {name}: "):
        decode(json.dumps({"type": "fork", **REQUEST, **wrong}).encode())
