import socket

import pytest

from cli_service import TRAIN, client_of
from edt_launch.cli.commands.logs import output
from edt_launch.cli.errors import UnreachableError
from scripted import HANGS_UP, Said, said, scripted, stream

FIRST = ["[0] a", "[1] A", "[0] b"]
LATER = ["[1] A", "[1] B", "[0] a", "[0] b", "[0] c", "no rank"]
"""The same output, merged otherwise, and more of it."""
RUNNING, ENDED = (said({"id": TRAIN, "owner": "ann", "state": state}) for state in ("running", "succeeded"))


@pytest.mark.parametrize("tail", [None, 1])
def test_a_service_that_is_started_again_costs_no_line_and_repeats_none(tail: int | None) -> None:
    told: list[str] = []
    pauses: list[float] = []
    seen = [] if tail is None else [stream(FIRST)]
    with scripted(*seen, stream(FIRST, is_whole=False), HANGS_UP, stream(LATER), ENDED) as server:
        client = client_of(server.url)
        lines = list(output(client, TRAIN, follow=True, tail=tail, told=told.append, pause=pauses.append))
    assert lines == [*FIRST[-tail if tail else 0 :], "[1] B", "[0] c", "no rank"]
    assert len(pauses) == 2
    assert [text.split("; ")[-1] for text in told] == ["waiting for it", "the service is back"]


def test_a_stream_that_ends_before_the_job_is_taken_up_again() -> None:
    with scripted(stream(FIRST), RUNNING, stream(LATER), ENDED) as server:
        lines = list(output(client_of(server.url), TRAIN, follow=True, pause=lambda _: None))
    assert sorted(lines) == sorted(LATER)


@pytest.mark.parametrize("begun", [(), (Said(b"HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\n", True),)])
def test_a_service_that_never_answers_to_the_end_is_not_waited_for(begun: tuple[Said, ...]) -> None:
    with scripted(*begun) as server, pytest.raises(UnreachableError, match="did not answer"):
        list(output(client_of(server.url, timeout=0.1), TRAIN, follow=True))


def test_a_log_in_which_nothing_comes_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []
    monkeypatch.setattr(socket.socket, "settimeout", lambda _, limit: limits.append(limit))
    with scripted(stream(FIRST), stream(FIRST), ENDED) as server:
        client = client_of(server.url)
        list(output(client, TRAIN, follow=False))
        assert None not in limits
        assert list(output(client, TRAIN, follow=True)) == FIRST
        assert None in limits
