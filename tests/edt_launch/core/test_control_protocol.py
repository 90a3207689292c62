"""Requests to launchers and their answers, as lines."""

import pytest

from edt_launch.core.control_protocol import (
    MAX_LINE,
    Accepted,
    Pause,
    Requests,
    Stop,
    write,
)


@pytest.mark.parametrize(
    "line, reason",
    [
        (b"\xff\xfe", "expected a request"),
        (b"[" * MAX_LINE, "expected a request"),
        (b'{"version": 1, "id": "a", "request": "stop", "at_once": 1}', "expected a request"),
        (b'{"version": 1, "id": "a", "request": "dance"}', "'dance': expected 'pause' or 'stop'"),
        (b'{"version": 1, "id": "", "request": "pause"}', "an id of 0 characters: expected 1 to 100"),
        (b'{"version": 2, "id": "a", "request": "pause"}', "understands version 1"),
        (b'{"version": 1, "id": "%s", "request": "pause"}' % (b"a" * MAX_LINE), "expected a request"),
    ],
)
def test_what_is_no_request_is_refused_with_the_reason(line: bytes, reason: str) -> None:
    reply, request = Requests().answer(line)
    assert request is None
    assert reason in reply.reason
    assert len(write(reply)) <= MAX_LINE


def test_a_request_is_new_once_and_accepted_each_time() -> None:
    requests = Requests()
    assert requests.answer(write(Pause("a"))) == (Accepted("a"), Pause("a"))
    assert requests.answer(write(Pause("a"))) == (Accepted("a"), None)
    assert requests.answer(write(Stop("b"))) == (Accepted("b"), Stop("b"))
