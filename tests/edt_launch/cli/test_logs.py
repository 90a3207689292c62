import socket
import threading

import pytest

from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Http
from edt_launch.cli.commands.logs import output
from edt_launch.cli.errors import UnreachableError
from fake_service import TOKEN, FakeService, Handler, hang_up

JOB = "jaaaaaaaa"
FIRST = ["[0] a", "[1] A", "[0] b"]
LATER = ["[1] A", "[1] B", "[0] a", "[0] b", "[0] c", "no rank"]
"""The same output, merged otherwise, and more of it."""


def client(service: FakeService) -> Service:
    return Service(Http(Configuration(service.url, TOKEN, "the test")))


def ended(service: FakeService) -> None:
    service.jobs[JOB]["state"] = "succeeded"


@pytest.mark.parametrize("tail", [None, 1])
def test_a_service_that_is_started_again_costs_no_line_and_repeats_none(
    service: FakeService, tail: int | None
) -> None:
    service.logs[JOB] = FIRST
    told: list[str] = []
    pauses: list[float] = []

    def broken(handler: Handler) -> None:
        handler.stream(FIRST, is_whole=False)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            service.logs[JOB] = LATER
            ended(service)

    if tail is not None:
        service.broken.append(lambda handler: handler.stream(FIRST))
    service.broken += [broken, hang_up]
    lines = list(output(client(service), JOB, follow=True, tail=tail, told=told.append, pause=pause))
    assert lines == [*FIRST[-tail if tail else 0 :], "[1] B", "[0] c", "no rank"]
    assert len(pauses) == 2
    assert [text.split("; ")[-1] for text in told] == ["waiting for it", "the service is back"]


def test_a_stream_that_ends_before_the_job_is_taken_up_again(service: FakeService) -> None:
    service.logs[JOB] = FIRST

    def pause(seconds: float) -> None:
        service.logs[JOB] = LATER
        ended(service)

    assert sorted(output(client(service), JOB, follow=True, pause=pause)) == sorted(LATER)


@pytest.mark.parametrize("status", [None, 500])
def test_a_service_that_never_answers_to_the_end_is_not_waited_for(
    service: FakeService, status: int | None
) -> None:
    is_over = threading.Event()

    def stuck(handler: Handler) -> None:
        if status is not None:
            handler.send_response(status)
            handler.send_header("Content-Length", "10")
            handler.end_headers()
        is_over.wait()
        hang_up(handler)

    service.broken.append(stuck)
    impatient = Service(Http(Configuration(service.url, TOKEN, "the test"), timeout=0.1))
    try:
        with pytest.raises(UnreachableError, match="did not answer"):
            list(output(impatient, JOB, follow=True))
    finally:
        is_over.set()


def test_a_log_in_which_nothing_comes_for_long_is_waited_for(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float | None] = []
    monkeypatch.setattr(socket.socket, "settimeout", lambda _, limit: limits.append(limit))
    service.logs[JOB] = FIRST
    ended(service)
    list(output(client(service), JOB, follow=False))
    assert None not in limits
    assert list(output(client(service), JOB, follow=True)) == FIRST
    assert None in limits
