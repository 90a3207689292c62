import pytest

from cli_service import EVAL, TRAIN, CliService
from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.transport import Http, problem
from edt_launch.cli.errors import (
    ClientError,
    NonsenseError,
    NoSuchJobError,
    NotAllowedError,
    RefusedError,
    UnreachableError,
)
from edt_launch.service.jobs.states import State
from scripted import HANGS_UP, Said, said, scripted, stream

ABOUT = {"user": "ada"}


def test_an_idle_connection_that_was_closed_is_made_again() -> None:
    with scripted(said(ABOUT), HANGS_UP, said(ABOUT)) as server:
        http = Http(Configuration(server.url, None, "the test"))
        assert [http.send("GET", "/").json() for _ in range(2)] == [ABOUT] * 2


def test_a_change_is_not_asked_for_twice() -> None:
    with scripted(said(ABOUT), HANGS_UP) as server:
        http = Http(Configuration(server.url, None, "the test"))
        http.send("GET", "/").json()
        with pytest.raises(UnreachableError):
            http.send("POST", "/users", content={"name": "bob"})
        assert server.asked == ["GET", "POST"]


def test_a_stream_that_breaks_off_is_an_error_after_its_lines() -> None:
    with scripted(stream(["one", "two"], is_whole=False)) as server:
        http = Http(Configuration(server.url, None, "the test"))
        lines = http.send("GET", "/jobs/j/logs").lines()
        assert [next(lines), next(lines)] == ["one", "two"]
        with pytest.raises(UnreachableError):
            next(lines)


@pytest.mark.parametrize(
    "answer, kind, text",
    [
        (Said(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"), UnreachableError, "broke off"),
        (said(b"<html>hello", "text/html"), NonsenseError, "<html>hello"),
    ],
)
def test_an_answer_that_is_too_short_or_no_json_is_not_taken_for_one(
    answer: Said, kind: type[ClientError], text: str
) -> None:
    with scripted(answer) as server:
        http = Http(Configuration(server.url, None, "the test"))
        with pytest.raises(kind, match=text):
            http.send("GET", "/").json()


CONFIGURATION = Configuration("http://x", None, "EDT_URL")


@pytest.mark.parametrize(
    "status, data, kind, text",
    [
        (401, b'{"title": "Unauthorized"}', NotAllowedError, "EDT_TOKEN"),
        (409, b'{"detail": "it has ended", "next": "see x"}', RefusedError, "it has ended; see x"),
        (503, b'{"title": "busy"}', UnreachableError, "busy"),
        (404, b"<html>", NonsenseError, "<html>"),
    ],
)
def test_problems_become_errors(status: int, data: bytes, kind: type[ClientError], text: str) -> None:
    error = problem(status, "text/html", data, CONFIGURATION)
    assert type(error) is kind
    assert text in str(error)


@pytest.mark.parametrize("text", [TRAIN, "jaaa", "train"])
def test_a_job_is_found_by_id_beginning_or_name(service: CliService, text: str) -> None:
    assert service.client_side().resolve(text) == TRAIN


@pytest.mark.parametrize("text", ["nosuch", "ja", "../users", "jaaa/stop"])
def test_what_is_no_job_is_not_found(service: CliService, text: str) -> None:
    with pytest.raises(NoSuchJobError, match="edt ps --all"):
        service.client_side().resolve(text)


def test_a_name_of_several_jobs_is_refused_unless_one_of_them_is_live(service: CliService) -> None:
    service.store.jobs.change(EVAL, name="train")
    with pytest.raises(ClientError, match=f"any of 2 jobs: {TRAIN}, {EVAL}"):
        service.client_side().resolve("train")
    service.go(TRAIN, State.FAILED)
    assert service.client_side().resolve("train") == EVAL
