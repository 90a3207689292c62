"""Messages of launcher and drivers, and their lines."""

import json
from typing import Any

import pytest

from edt_messages import wmla
from edt_messages.codec import MessageError
from edt_messages.wmla import Message, decode, encode

LINES: list[tuple[Message, dict[str, Any]]] = [
    (
        wmla.Train(1, ("python", "-m", "x"), 16),
        {"type": "train", "number": 1, "program": ["python", "-m", "x"], "max_workers": 16},
    ),
    (wmla.Limit(3), {"type": "limit", "max_workers": 3}),
    (wmla.Cancel(2), {"type": "cancel", "number": 2}),
    (wmla.ExecutorMessage(2, "{}"), {"type": "executor_message", "number": 2, "text": "{}"}),
    (wmla.Ended(2, 1, "two\nlines"), {"type": "ended", "number": 2, "exit_code": 1, "message": "two\nlines"}),
]
NAMES = [content["type"] for _, content in LINES]


@pytest.mark.parametrize("message, content", LINES, ids=NAMES)
def test_a_message_is_its_line(message: Message, content: dict[str, Any]) -> None:
    line = json.dumps(content).encode() + b"\n"
    assert encode(message) == line
    assert decode(line) == message


def test_all_messages_are_above() -> None:
    assert sorted(NAMES) == sorted(wmla._codec._readers)


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"program": []},
        {"program": ["x", 1]},
        {"program": "x"},
        {"max_workers": 0},
        {"max_workers": 2**20 + 1},
        {"max_workers": "2"},
    ],
)
def test_a_training_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(MessageError, match=f"is no message: {name}: "):
        decode(json.dumps(LINES[0][1] | wrong).encode())
