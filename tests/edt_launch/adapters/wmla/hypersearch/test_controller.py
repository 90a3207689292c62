from typing import Any

import pytest

from edt_launch.adapters.wmla.submission import submitting
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.experiments.searches.choosing import Chooser
from edt_launch.service.experiments.searches.controller import TROUBLE
from edt_launch.service.experiments.searches.space import Point
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.states import State, Wanted
from laboratory import Laboratory


def test_a_search_that_cannot_go_on_fails_alone(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the mistake is: here the sampler's. Its jobs are stopped, and what has ended is kept."""
    choose = Chooser.choose
    name, other = laboratory.start(maxParalleJobNum=3), laboratory.post(laboratory.bob).json()
    first, second, third = laboratory.jobs()
    laboratory.finish(first, 0.5)
    laboratory.world.go(third.id, State.STARTING, State.FAILED)

    def broken(chooser: Chooser, number: int) -> Point:
        if number == 3:
            raise OverflowError("Range exceeds valid bounds\0")
        return choose(chooser, number)

    monkeypatch.setattr(Chooser, "choose", broken)
    laboratory.look()
    shown = laboratory.show(name)
    assert (shown["state"], shown["running"], shown["complete"]) == ("FAILED", 0, 1)
    assert [trial["state"] for trial in shown["experiments"]] == ["FINISHED", "KILLED", "FAILED"]
    assert shown["best"]["metricVal"] == 0.5
    assert "OverflowError('Range exceeds valid bounds" in shown["reason"]
    assert [job.wanted for job in laboratory.jobs() if job.id == second.id] == [Wanted.STOP]
    assert laboratory.admin.get(f"hypersearch/{other}").json()["state"] == "RUNNING"


def test_trouble_holds_up_its_own_search_alone(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, other = laboratory.post(laboratory.ann).json(), laboratory.post(laboratory.bob).json()
    submit = submitting.submit

    def fail(context: Context, user: UserRecord, *arguments: Any) -> Any:
        if user.name == "ann":
            raise OSError(28, "No space left on device")
        return submit(context, user, *arguments)

    monkeypatch.setattr(submitting, "submit", fail)
    assert laboratory.look() == laboratory.world.clock.now + TROUBLE
    assert laboratory.show(name)["state"] == "RECOVERPEND"
    assert laboratory.admin.get(f"hypersearch/{other}").json()["state"] == "RUNNING"
    monkeypatch.undo()
    laboratory.world.clock.now += TROUBLE
    laboratory.look()
    assert laboratory.show(name)["state"] == "RUNNING"


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("has_submitted, is_stopped", [(True, False), (False, False), (True, True)])
def test_a_service_that_dies_while_it_submits_submits_once(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, has_submitted: bool, is_stopped: bool
) -> None:
    submit = submitting.submit

    def killed(*arguments: object) -> None:
        if has_submitted:
            submit(*arguments)  # type: ignore[arg-type]
        raise KilledError

    monkeypatch.setattr(submitting, "submit", killed)
    with pytest.raises(KilledError):
        laboratory.start(maxJobNum=1)
    monkeypatch.undo()
    name = laboratory.world.store.experiments.searches()[0].name
    if is_stopped:
        assert laboratory.ann.put(f"hypersearch/{name}").status_code == 204
    laboratory.start_service()
    laboratory.look()
    (job,) = laboratory.world.store.jobs.page(JobQuery(limit=None)).jobs
    if is_stopped:
        assert job.wanted is Wanted.STOP
        return
    laboratory.look()
    (trial,) = laboratory.show(name)["experiments"]
    assert trial["appId"] == job.environment["DLI_EXECID"]
    assert laboratory.play(name)["state"] == "FINISHED"


def test_a_search_whose_owner_is_gone_fails(laboratory: Laboratory) -> None:
    name = laboratory.post(laboratory.bob).json()
    laboratory.world.store.accounts.remove_user("bob")
    for _ in range(3):
        laboratory.look()
    shown = laboratory.admin.get(f"hypersearch/{name}").json()
    assert shown["state"] == "FAILED"
    assert "bob~1, is no user any more" in shown["reason"]
