"""What the driver and edt-launch say to each other."""

import json

import pytest

from edt_launch.adapters.wmla.running.driver import MOST_TEXT, Limit, Nonsense, Requests, Train, ended

TRAIN = {"do": "train", "number": 1, "program": ["python", "-m", "x"], "max_workers": 16}


def line(message):
    return json.dumps(message).encode() + b"\n"


def test_messages_come_in_whatever_pieces():
    requests = Requests()
    found = []
    for byte in line(TRAIN) + line({"do": "limit", "max_workers": 3}):
        found += requests.feed(bytes([byte]))
    assert found == [Train(1, ("python", "-m", "x"), 16), Limit(3)]


@pytest.mark.parametrize(
    "wrong",
    [
        {**TRAIN, "number": 0},
        {**TRAIN, "program": []},
        {**TRAIN, "program": ["x", 1]},
        {**TRAIN, "program": "x"},
        {**TRAIN, "max_workers": 0},
        {**TRAIN, "max_workers": "2"},
        {"do": "limit", "max_workers": -1},
        {"do": "sing"},
        {},
        [],
        None,
    ],
)
def test_what_is_no_message_is_nonsense(wrong):
    assert list(Requests().feed(line(wrong))) == [Nonsense(json.dumps(wrong))]


def test_so_is_what_is_no_json_or_has_no_end():
    assert list(Requests().feed(b"\xff\n")) == [Nonsense("\N{REPLACEMENT CHARACTER}")]
    assert list(Requests().feed(b"[" * 10_000 + b"\n")) == [Nonsense("[" * 10_000)]
    (endless,) = Requests().feed(b"x" * (MOST_TEXT + 1))
    assert isinstance(endless, Nonsense)


def test_the_driver_is_told_in_one_line():
    told = ended(1, "two\nlines")
    assert told.count(b"\n") == 1
    assert json.loads(told) == {"ended": {"exit_code": 1, "message": "two\nlines"}}
