"""Messages of launcher and workers: what is refused."""

import json

import pytest

from edt_messages import messages
from edt_messages.codec import MessageError, UnknownMessageError
from edt_messages.messages import MAX_LINE, decode, encode

PROGRESS = {"type": "progress", "step": 1, "epoch": 0, "size": 1}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe\n",
        b"[" * 100_000,
        b'{"type": ["stop"], "generation": 4}\n',
        b'{"type": "stop", "generation": -1}\n',
        b'{"type": "stop", "generation": 4',
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


def test_a_line_that_is_too_long_is_refused() -> None:
    line = b'{"type": "leaving", "reason": "%s"}\n' % (b"x" * MAX_LINE)
    with pytest.raises(MessageError, match=rf"it has {len(line)} bytes, {MAX_LINE} are allowed"):
        decode(line)
    with pytest.raises(ValueError, match=rf"the leaving message has .* bytes, {MAX_LINE:,} are allowed"):
        encode(messages.Leaving("x" * MAX_LINE))


def test_an_unknown_type_is_told_from_an_error() -> None:
    with pytest.raises(UnknownMessageError, match="its type 'released' is unknown"):
        decode(b'{"type": "released", "worker": 1}\n')
