import pytest

from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Http, problem
from edt_launch.cli.errors import (
    ClientError,
    NonsenseError,
    NoSuchJobError,
    NotAllowedError,
    RefusedError,
    UnreachableError,
)
from fake_service import TOKEN, FakeService, Handler, hang_up


@pytest.fixture
def http(service: FakeService) -> Http:
    return Http(Configuration(service.url, TOKEN, "the test"))


def test_an_idle_connection_that_was_closed_is_made_again(service: FakeService, http: Http) -> None:
    http.send("GET", "/").json()
    service.broken.append(hang_up)
    assert http.send("GET", "/").json()["user"] == "ada"


def test_a_change_is_not_asked_for_twice(service: FakeService, http: Http) -> None:
    http.send("GET", "/").json()
    service.broken.append(hang_up)
    with pytest.raises(UnreachableError):
        http.send("POST", "/users", content={"name": "bob"})
    assert len(service.asked) == 2


def test_a_stream_that_breaks_off_is_an_error_after_its_lines(service: FakeService, http: Http) -> None:
    service.broken.append(lambda handler: handler.stream(["one", "two"], is_whole=False))
    lines = http.send("GET", "/jobs/jaaaaaaaa/logs").lines()
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(UnreachableError):
        next(lines)


def short(handler: Handler) -> None:
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"{}")
    handler.close_connection = True


def test_an_answer_that_is_too_short_is_not_taken_for_whole(service: FakeService, http: Http) -> None:
    service.broken.append(short)
    with pytest.raises(UnreachableError, match="broke off"):
        http.send("GET", "/").json()


def test_an_answer_that_is_no_json_is_nonsense(service: FakeService, http: Http) -> None:
    service.broken.append(lambda handler: handler.reply(200, "text/html", b"<html>hello"))
    with pytest.raises(NonsenseError, match="<html>hello"):
        http.send("GET", "/").json()


CONFIGURATION = Configuration("http://x", None, "EDT_URL")


@pytest.mark.parametrize(
    "status, data, kind, text",
    [
        (401, b'{"title": "Unauthorized"}', NotAllowedError, "EDT_TOKEN"),
        (
            409,
            b'{"title": "No", "detail": "it has ended", "next": "see x"}',
            RefusedError,
            "it has ended; see x",
        ),
        (
            422,
            b'{"title": "No", "detail": "weight: 0: no", "next": "GET /openapi.json describes it"}',
            RefusedError,
            "weight: 0: no; see the command's --help",
        ),
        (500, b"oops", RefusedError, "status 500"),
        (503, b'{"title": "busy"}', UnreachableError, "busy"),
        (404, b"<html>", NonsenseError, "<html>"),
    ],
)
def test_problems_become_errors(status: int, data: bytes, kind: type[ClientError], text: str) -> None:
    error = problem(status, "text/html", data, CONFIGURATION)
    assert type(error) is kind
    assert text in str(error)


@pytest.mark.parametrize("text", ["jaaaaaaaa", "jaaa", "train"])
def test_a_job_is_found_by_id_beginning_or_name(service: FakeService, http: Http, text: str) -> None:
    assert Service(http).resolve(text) == "jaaaaaaaa"


@pytest.mark.parametrize("text", ["nosuch", "ja", "../users", "jaaa/stop", "ünknown", "a b"])
def test_what_is_no_job_is_not_found(service: FakeService, http: Http, text: str) -> None:
    with pytest.raises(NoSuchJobError, match="edt ps --all"):
        Service(http).resolve(text)


def test_a_name_of_several_jobs_is_refused_unless_one_of_them_is_live(
    service: FakeService, http: Http
) -> None:
    service.jobs["jbbbbbbbb"]["name"] = "train"
    with pytest.raises(ClientError, match="any of 2 jobs: jaaaaaaaa, jbbbbbbbb"):
        Service(http).resolve("train")
    service.jobs["jaaaaaaaa"]["state"] = "failed"
    assert Service(http).resolve("train") == "jbbbbbbbb"
