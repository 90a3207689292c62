"""Requests to launchers and their answers, as lines."""

from edt_launch.core.control_protocol import (
    Accepted,
    Pause,
    Requests,
    Stop,
    write,
)


def test_a_request_is_new_once_and_accepted_each_time() -> None:
    requests = Requests()
    assert requests.answer(write(Pause("a"))) == (Accepted("a"), Pause("a"))
    assert requests.answer(write(Pause("a"))) == (Accepted("a"), None)
    assert requests.answer(write(Stop("b"))) == (Accepted("b"), Stop("b"))
