from dataclasses import replace

import pytest

from edt_launch.service.app import retention
from edt_launch.service.app.retention import DAY, prune
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.jobs.states import State
from world import NOW, World


@pytest.mark.parametrize("days, left", [(90.0, 2), (0.0, 4)])
def test_jobs_that_ended_long_ago_are_deleted_a_few_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch, days: float, left: int
) -> None:
    monkeypatch.setattr(retention, "JOBS", 1)
    settings = world.settings.model_copy(update={"retention": days})
    context = replace(world.context, settings=settings)
    old, older, recent, queued = (world.submit(world.ann)["id"] for _ in range(4))
    for job, ended in ((old, NOW - 91 * DAY), (older, NOW - 92 * DAY), (recent, NOW - 89 * DAY)):
        world.store.jobs.move(job, State.STOPPED, "", ended, ended=ended)
    history = [AllocationRecord(job, "ann", NOW - 99 * DAY, 0, 1, (), "") for job in (old, recent, queued)]
    world.store.history.add([*history, AllocationRecord("jgoneaaaa", "ann", NOW, 0, 1, (), "")])
    prune(context)
    if days:
        assert world.store.jobs.ids() == {old, recent, queued}
    prune(context)
    assert len(world.store.jobs.ids()) == left
    there = {change.job for change in world.store.history.newest()}
    assert there == {recent, queued, "jgoneaaaa"} | ({old} if not days else set())
    assert [world.files(job).root.exists() for job in (old, recent, queued)] == [not days, True, True]
