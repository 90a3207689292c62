"""Messages of launcher and workers, and their lines.

The lines are what installed versions send: a change of one breaks them.
"""

import json
import math
from typing import Any

import numpy as np
import pytest

from edt_messages import messages
from edt_messages.codec import MessageError, UnknownMessageError
from edt_messages.messages import MAX_LINE, Message, decode, encode

PLACE = {
    "rank": 1,
    "size": 2,
    "local_rank": 1,
    "local_size": 2,
    "cross_rank": 0,
    "cross_size": 1,
    "host": "node1",
    "generation": 3,
    "port": 4711,
    "address": "192.0.2.1",
}
PROGRESS = {"type": "progress", "step": 1, "epoch": 0, "size": 1}
LINES: list[tuple[Message, dict[str, Any]]] = [
    (messages.Hello("t", 7, 42), {"type": "hello", "token": "t", "worker": 7, "pid": 42}),
    (messages.AtRendezvous(5), {"type": "at_rendezvous", "progress": 5}),
    (
        messages.Standby(1.5, 0.25, None),
        {"type": "standby", "waited": 1.5, "processor": 0.25, "private": None},
    ),
    (messages.Synced(), {"type": "synced"}),
    (messages.CheckpointWanted("a b"), {"type": "checkpoint_wanted", "folder": "a b"}),
    (messages.ProgramMessage("{}"), {"type": "program_message", "text": "{}"}),
    (messages.CheckpointBrought(), {"type": "checkpoint_brought"}),
    (messages.Done(), {"type": "done"}),
    (messages.Leaving("spot"), {"type": "leaving", "reason": "spot"}),
    (
        messages.Heartbeat(3, "loading", 0.5, 0.25, {"loading": (4, 1.5)}, "a call"),
        {
            "type": "heartbeat",
            "step": 3,
            "stage": "loading",
            "seconds": 0.5,
            "idle": 0.25,
            "stages": {"loading": [4, 1.5]},
            "call": "a call",
        },
    ),
    (
        messages.Progress(7, None, 2, {"loss": 0.5, "note": "warm-up"}),
        {"type": "progress", "step": 7, "epoch": None, "size": 2, "values": {"loss": 0.5, "note": "warm-up"}},
    ),
    (
        messages.Resumed(3, 2, 4, 1.25, {"drain": 0.5}),
        {"type": "resumed", "generation": 3, "from": 2, "to": 4, "pause": 1.25, "phases": {"drain": 0.5}},
    ),
    (messages.Restored("a b", 2), {"type": "restored", "path": "a b", "step": 2}),
    (
        messages.CheckpointSkipped("p", "torn"),
        {"type": "checkpoint_skipped", "path": "p", "reason": "torn"},
    ),
    (
        messages.Checkpointed(2, "p", 100, 0.5, last=True),
        {
            "type": "checkpointed",
            "step": 2,
            "path": "p",
            "bytes": 100,
            "seconds": 0.5,
            "last": True,
            "again": False,
        },
    ),
    (messages.CheckpointFailed("full"), {"type": "checkpoint_failed", "reason": "full"}),
    (messages.Saving(True), {"type": "saving", "active": True}),
    (messages.Held(), {"type": "held"}),
    (messages.WorldFormed(2, 4), {"type": "world", "generation": 2, "size": 4}),
    (messages.Stop(4), {"type": "stop", "generation": 4}),
    (messages.Assign(**PLACE), {"type": "assign", **PLACE}),
    (messages.Admit(4, 7), {"type": "admit", "generation": 4, "step": 7}),
    (messages.Leave(saves=True), {"type": "leave", "saves": True}),
    (messages.Cut(4), {"type": "cut", "generation": 4}),
    (messages.End(has_grace=True), {"type": "end", "has_grace": True}),
]
NAMES = [content["type"] for _, content in LINES]


@pytest.mark.parametrize("message, content", LINES, ids=NAMES)
def test_a_message_is_its_line(message: Message, content: dict[str, Any]) -> None:
    line = json.dumps(content).encode() + b"\n"
    assert encode(message) == line
    assert decode(line) == message
    assert decode(json.dumps(content | {"later": [1]}).encode()) == message  # a field of a later version
    assert messages.type_of(message) == content["type"]


def test_all_messages_are_above() -> None:
    assert sorted(NAMES) == sorted(messages._codec._readers)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"1\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"[" * 100_000,
        b'{"type": ["stop"], "generation": 4}\n',
        b'{"type": "stop"}\n',
        b'{"type": "stop", "generation": -1}\n',
        b'{"type": "stop", "generation": 4.5}\n',
        b'{"type": "stop", "generation": 4',
        b'{"type": "leave", "saves": 1}\n',
        b'{"type": "standby", "waited": NaN, "processor": 0}\n',
        b'{"type": "heartbeat", "step": 1, "stage": "x", "seconds": 1, "idle": 1, "stages": {"x": [1]}}\n',
        b'{"type": "progress", "step": 1, "epoch": 0, "size": 1, "values": {"loss": [1]}}\n',
        json.dumps(PROGRESS | {"values": {"seed": 2**63}}).encode(),
        json.dumps(PROGRESS | {"values": {"note": "x" * 2**15}}).encode(),
        json.dumps(PROGRESS | {"values": {"x" * 2**15 + "x": 1}}).encode(),
    ],
)
def test_a_line_with_anything_wrong_is_refused(line: bytes) -> None:
    with pytest.raises(MessageError, match="is no message: "):
        decode(line)


def test_values_may_be_infinite_or_no_number() -> None:
    sent = messages.Progress(1, 0, 1, {"loss": math.nan, "most": math.inf, "least": -math.inf})
    np.testing.assert_equal(vars(decode(encode(sent))), vars(sent))


def test_a_line_that_is_too_long_is_refused() -> None:
    line = b'{"type": "leaving", "reason": "%s"}\n' % (b"x" * MAX_LINE)
    with pytest.raises(MessageError, match=rf"it has {len(line)} bytes, {MAX_LINE} are allowed"):
        decode(line)
    with pytest.raises(ValueError, match=rf"the leaving message has .* bytes, {MAX_LINE:,} are allowed"):
        encode(messages.Leaving("x" * MAX_LINE))


def test_an_unknown_type_is_told_from_an_error() -> None:
    with pytest.raises(UnknownMessageError, match="its type 'released' is unknown"):
        decode(b'{"type": "released", "worker": 1}\n')
