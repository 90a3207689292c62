import pytest
from sqlalchemy.exc import OperationalError

from asking import Asking
from edt_launch.adapters.wmla.rest.authenticator import NotOfferedError, refusal
from edt_launch.service.errors import (
    ArchiveError,
    ConflictError,
    NotFoundError,
    TooLargeError,
    UnauthorizedError,
)


@pytest.mark.parametrize(
    "error, status",
    [
        (ArchiveError("broken"), 400),
        (UnauthorizedError("who"), 401),
        (NotFoundError("nothing", "GET /api/v1/jobs lists them"), 404),
        (ConflictError("busy"), 409),
        (TooLargeError("large"), 413),
        (NotOfferedError("never"), 501),
    ],
)
def test_an_error_is_a_line_of_text(error: Exception, status: int) -> None:
    answer = refusal(error)  # type: ignore[arg-type]
    assert answer.status_code == status
    assert bytes(answer.body).decode() == f"Error {status}: {error}.\n"


def test_advice_is_in_the_same_line() -> None:
    answer = refusal(ConflictError("it is\nrunning.", "stop it first."))
    assert bytes(answer.body) == b"Error 409: it is running.; stop it first.\n"


def test_every_error_below_the_bases_is_one(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    client = asking.modern()
    client = asking.client(headers=dict(client.headers), raise_server_exceptions=False)

    def broken(error: Exception) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(asking.world.store.hosts, "all", fail)
        monkeypatch.setattr(asking.world.store.shares, "all", fail)

    broken(RuntimeError("mistake"))
    answers = [
        client.get("/nowhere"),
        client.put("/execs"),
        client.patch("/execs/x"),
        client.get("/resplans/resplantree"),
    ]
    broken(OperationalError("SELECT", {}, Exception("gone")))
    answers.append(client.get("/resplans/resplantree"))
    broken(OSError(28, "No space left on device"))
    answers.append(client.get("/resplans/resplantree"))
    assert [answer.status_code for answer in answers] == [404, 405, 405, 500, 503, 503]
    for answer in answers:
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.startswith(f"Error {answer.status_code}: ")
        assert answer.text.count("\n") == 1
    outside = asking.client("").get("/nowhere", headers=dict(client.headers))
    assert outside.headers["content-type"] == "application/problem+json"


def test_a_405_tells_all_that_is_possible(asking: Asking) -> None:
    client = asking.modern()
    assert client.patch("/execs").headers["allow"] == "DELETE, GET, HEAD, POST"
    assert client.put("/execs/x").headers["allow"] == "DELETE, GET, HEAD"
    assert asking.world.ann.put("/jobs").headers["allow"] == "GET, HEAD, POST"
