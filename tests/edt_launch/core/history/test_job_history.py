"""The history of a job, folded from its events."""

from collections.abc import Mapping

from edt_launch.core.history import events, job_history
from edt_launch.core.history.job_history import JobHistory, Mark, Resize
from edt_messages.records import Value


def world(generation: int, size: int, reason: str = "", **more: object) -> events.World:
    return events.World(generation, size, reason=reason, **more)  # type: ignore[arg-type]


def progress(step: int, size: int = 2, **values: Value) -> events.Progress:
    return events.Progress(step, 0, size, values, time=float(step))


def started(worker: int, rank: int, time: float = 0.0) -> events.Started:
    return events.Started(worker, "h", rank, "0", rank, time=time)


def ended(worker: int, time: float) -> Mapping[str, events.Event]:
    slot = worker, "h", 0, "0"
    return {
        "failed": events.Failed(*slot, 0, exit_code=1, time=time),
        "lost": events.Lost(*slot, time=time),
        "left": events.Released(*slot, time=time),
    }


def fold(*happened: events.Event) -> JobHistory:
    history = JobHistory()
    for event in happened:
        history.observe(event)
    return history


def test_a_jobs_course() -> None:
    history = fold(
        started(0, 0),
        started(1, 1),
        events.Ready(0, 9),
        world(1, 2),
        progress(5, loss=0.5, total_steps=100),
        progress(6, loss=0.4),
        events.Finished(0, "done"),
    )
    assert (history.size, history.generation, history.step, history.total, history.epoch) == (2, 1, 6, 100, 0)
    assert history.values == {"loss": 0.4, "total_steps": 100}
    assert list(history.marks) == [Mark(5, 5, 2, 1), Mark(6, 6, 2, 1)]
    assert (history.starting, history.resizes, history.training) == (1, [], 1.0)
    assert (history.exit_code, history.reason) == (0, "done")


def test_resizes_have_the_step_and_their_own_pause() -> None:
    history = fold(
        world(1, 2),
        progress(5),
        world(2, 4, "grown"),
        world(3, 1, "shrunk"),
        events.Resumed(3, 2, 1, 0.25, {"transfer": 0.1}, time=9.0),
    )
    done = Resize(3, 5, 2, 1, 0.25, "shrunk", {"transfer": 0.1}, end=9.0)
    assert history.resizes == [Resize(2, 5, 2, 4, None, "grown"), done]
    seen_later = fold(world(3, 1, "shrunk"), events.Resumed(3, 2, 1, 0.25, time=9.0))
    assert seen_later.resizes == [Resize(3, None, 2, 1, 0.25, "shrunk", end=9.0)]


def test_a_start_anew_is_no_resize_and_its_generations_are_its_own() -> None:
    history = fold(
        world(1, 2),
        progress(5),
        world(2, 4, "grown"),
        events.Restarting("a worker has died", 0.0, 1, 3, True, time=6.0),
        world(1, 3),
        progress(20, 3),
        progress(22, 3),
        world(2, 1, "shrunk"),
        events.Resumed(2, 3, 1, 0.5, time=23.0),
    )
    assert [(one.step, one.after, one.pause) for one in history.resizes] == [(5, 4, None), (22, 1, 0.5)]
    (start,) = history.starts
    assert (start.before, start.after, start.step, start.pause) == (None, 3, 5, 15.0)
    assert (start.reason, history.training) == ("a worker has died", 2.0)


def test_a_workers_life_has_a_part_for_each_rank_and_an_end() -> None:
    history = fold(
        started(1, 0),
        started(2, 1),
        world(1, 2, ranks={1: 0, 2: 1}, time=5.0),
        ended(1, 9.0)["failed"],
        world(2, 1, ranks={2: 0}, time=10.0),
        world(3, 1, ranks={2: 0}, time=11.0),
    )
    told = [(one.worker, one.rank, one.start, one.end, one.state) for one in history.lives]
    assert told == [
        (1, 0, 0.0, 5.0, "starting"),
        (2, 1, 0.0, 5.0, "starting"),
        (1, 0, 5.0, 9.0, "failed"),
        (2, 1, 5.0, 10.0, "training"),
    ]
    (life,) = history.living.values()
    assert (life.worker, life.rank, life.start, life.end) == (2, 0, 10.0, None)
    assert history.gone == {1}


def test_workers_end_in_their_own_ways_or_with_their_launcher() -> None:
    for state, event in ended(1, 5.0).items():
        history = fold(started(1, 0), event, ended(1, 6.0)["left"])
        assert ([one.state for one in history.lives], history.gone) == ([state], {1})
    assert fold(started(1, 0), ended(1, 5.0)["lost"]).gone == set()
    again = fold(started(1, 0), started(2, 0), events.Launched(time=7.0), started(1, 0, 8.0))
    assert (again.gone, again.living[1].start) == ({2}, 8.0)


def test_the_state_is_bounded_whatever_a_job_writes() -> None:
    history, again = JobHistory(), events.Restarting("", 0, 1, 1, True)
    for at in range(2 * job_history.MAX_RESIZES):
        resize = world(1, 1), progress(at, **{f"v{at}": at}), world(2, 2), events.Resumed(2, 1, 2, 0.1)
        for event in (*resize, again, started(at, 0), ended(at, 1.0)["left"]):
            history.observe(event)
    assert len(history.numbers) == job_history.MAX_NAMES
    assert len(history.values) <= job_history.MAX_VALUES
    assert max(len(history.resizes), len(history.starts)) <= job_history.MAX_RESIZES
    assert len(history.lives) == job_history.MAX_LIVES
