import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from edt_launch.service.files.rest.following import until_it_ends
from edt_launch.service.jobs.states import State
from world import World


def test_a_database_that_does_not_answer_ends_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.submit(world.ann)["id"]
    world.go(job, State.STOPPED)
    found, calls = world.store.jobs.state, []

    def state(job: str) -> State | None:
        calls.append(job)
        if len(calls) == 1:
            raise OperationalError("SELECT", {}, Exception("gone"))
        return found(job)

    monkeypatch.setattr(world.store.jobs, "state", state)
    is_over = until_it_ends(world.context, job)
    assert [asyncio.run(is_over()) for _ in range(2)] == [False, True]
