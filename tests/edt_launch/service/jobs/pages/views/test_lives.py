from collections.abc import Iterable, Mapping

from edt_launch.core.history import events
from edt_launch.core.history.job_history import JobHistory
from edt_launch.service.jobs.pages.views.lives import Lives, lives


def started(time: float, worker: int, rank: int) -> events.Event:
    return events.Started(worker=worker, host="a", slot=rank, device=str(rank), rank=rank, time=time)


def world(time: float, ranks: Mapping[int, int]) -> events.Event:
    return events.World(generation=1, size=len(ranks), ranks=ranks, time=time)


def failed(time: float, worker: int, rank: int) -> events.Event:
    return events.Failed(
        worker=worker, host="a", slot=rank, device=str(rank), rank=rank, exit_code=1, time=time
    )


def told(found: Lives) -> list[tuple[int, int, float, float, str]]:
    return [
        (rank, part.worker, part.start, part.end, part.state) for rank, parts in found.ranks for part in parts
    ]


def folded(happened: Iterable[events.Event], now: float | None) -> Lives:
    history = JobHistory()
    for event in happened:
        history.observe(event)
    return lives(history, now)


def test_a_life_has_a_part_for_each_rank_and_an_end() -> None:
    happened = [
        started(0.0, 1, 0),
        started(0.0, 2, 1),
        world(5.0, {1: 0, 2: 1}),
        failed(9.0, 1, 0),
        world(10.0, {2: 0}),
        events.Left(worker=2, time=20.0),
        events.Released(worker=2, host="a", slot=1, device="1", time=21.0),
    ]
    found = folded(happened, None)
    assert told(found) == [
        (0, 1, 0.0, 5.0, "starting"),
        (0, 1, 5.0, 9.0, "failed"),
        (0, 2, 10.0, 20.0, "left"),
        (1, 2, 0.0, 5.0, "starting"),
        (1, 2, 5.0, 10.0, "training"),
    ]
    parts = [part for _, parts in found.ranks for part in parts]
    assert [(part.left, part.width) for part in parts][:3] == [(0.0, 25.0), (25.0, 20.0), (50.0, 50.0)]
    assert parts[0].where == "a 0"
