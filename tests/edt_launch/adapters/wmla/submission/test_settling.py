import io

import pytest

from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.adapters.wmla.submission.submitting import settle, submit
from edt_launch.service.database.records import UserRecord
from edt_launch.service.submission import Submitter
from world import World, tar


class KilledError(BaseException):
    pass


def killed(*_: object) -> None:
    raise KilledError


def send(world: World) -> None:
    request = ExecRequest("--exec-start PyTorch --model-dir m")
    submit(world.context, UserRecord("ann"), request, io.BytesIO(tar({"m/main.py": b""})))


def test_names_find_the_job_that_was_made_for_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    send(world)
    monkeypatch.setattr(world.store.execs, "assign", killed)
    with pytest.raises(KilledError):
        send(world)
    monkeypatch.undo()
    (known, lost) = world.store.jobs.page().jobs
    assert world.store.execs.find(lost.environment["DLI_EXECID"]) is None
    settle(world.store)
    for job in (known, lost):
        names = world.store.execs.find(job.environment["DLI_EXECID"])
        assert names is not None
        assert names.job == job.id


def test_names_without_a_job_are_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Submitter, "submit", killed)
    monkeypatch.setattr(world.store.execs, "release", lambda _: None)
    with pytest.raises(KilledError):
        send(world)
    monkeypatch.undo()
    assert [names.number for names in world.store.execs.reserved()] == [1]
    settle(world.store)
    assert world.store.execs.reserved() == []
