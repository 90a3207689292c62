"""What a job's events say of it."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from edt_launch.core.history.events import (
    AllocatedHost,
    AllocationAccepted,
    Begun,
    Checkpointed,
    Driver,
    Ended,
    Event,
    Failed,
    HostReachable,
    HostUnreachable,
    Launched,
    Lost,
    Progress,
    Ready,
    Released,
    Restarting,
    Resumed,
    Started,
    Usable,
    World,
)
from edt_launch.service.jobs.loop.progress import (
    LOST_GRACE,
    MAX_START_COST,
    PRIOR_COST,
    JobProgress,
    LauncherRun,
    Pace,
)
from edt_messages.records import Value

BEGUN = Begun(7, 0.5, 1, 4)


def after(*happened: Event) -> JobProgress:
    return JobProgress().after(happened)[0]


def started(worker: int, device: str, host: str = "h") -> Event:
    return Started(worker, host, 0, device, 0)


def released(worker: int) -> Event:
    return Released(worker, "h", 0, None)


def progress(time: float, step: int, size: int, **values: Value) -> Event:
    return Progress(step, 0, size, values, time=float(time))


def world(size: int) -> Event:
    return World(1, size)


def run(*happened: Event) -> LauncherRun:
    """What a launcher's events say of it."""
    found = after(BEGUN, *happened).run
    assert found is not None
    return found


def written(job: JobProgress) -> Any:
    return json.loads(json.dumps(asdict(job)))


def test_who_uses_which_device() -> None:
    found = run(started(0, "a"), started(1, "b"), released(0))
    assert found == LauncherRun(7, 0.5, 1, 4, workers=((1, "h", "b"),), began=0.0)
    assert found.devices == {("h", "b")}


NEXT = replace(BEGUN, pid=8)
ALONE = (AllocatedHost("h1", 1, None),)


@pytest.mark.parametrize(
    "then", [(), (Launched(),), (Ended(1),), (Launched(), Ended(0)), (NEXT,), (Ended(1), NEXT, NEXT)]
)
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_worker_keeps_its_devices_until_it_is_known_to_be_gone(
    then: tuple[Event, ...], is_lost: bool
) -> None:
    two = started(0, "a"), started(0, "b")  # one worker with two devices
    happened = (*two, *([Lost(0, "h", 0, "a,b")] * is_lost), *then)
    job = after(BEGUN, *happened)
    assert (run(*happened).devices, run(world(1), *happened, Launched()).size) == (
        {("h", "a"), ("h", "b")},
        0,
    )
    assert JobProgress.from_json(written(job)) == job
    if NEXT in then:  # which numbers its workers anew
        assert run(*happened, started(0, "c"), released(0)).devices == {("h", "a"), ("h", "b")}
        assert run(*happened, replace(Launched(), time=LOST_GRACE)).devices == frozenset()
    else:
        gone = run(*happened, released(0))
        assert (gone.devices, gone.lost) == (frozenset(), ())


def test_a_driver_is_there_whatever_trains() -> None:
    assert run(Driver(9, "driver-1"), Launched()) == LauncherRun(7, 0.5, 1, 4, is_driven=True)


def test_the_end_and_the_next_beginning() -> None:
    end = started(0, "a"), released(0), Ended(5, "left")
    assert (run(*end).exit_code, run(*end).message, run(*end).workers) == (5, "left", ())
    assert run(*end, NEXT) == LauncherRun(8, 0.5, 1, 4)


def test_paces_are_measured_between_reports_of_one_world() -> None:
    job = after(
        BEGUN,
        world(2),
        progress(10, 5, 2, loss=0.5, total_steps=100),
        progress(20, 25, 2),
        world(4),
        progress(25, 30, 4),
        progress(26, 34, 4),
        progress(27, 33, 4),  # done again
    )
    assert job.paces == (Pace(2, 20, 10), Pace(4, 4, 1))
    assert (job.step, job.total_steps, job.loss, job.resizes) == (33, 100, 0.5, 1)


@pytest.mark.parametrize(
    "values", [{"loss": float("nan")}, {"loss": "low"}, {"total_steps": -1}, {"loss": float("inf")}]
)
def test_reports_that_make_no_sense_are_left_out(values: dict[str, Value]) -> None:
    job = after(BEGUN, progress(1, 1, 1, **values))
    assert (job.step, job.total_steps, job.loss) == (1, None, None)


@pytest.mark.parametrize("event", [started(0, "a\0"), started(0, "a", "h\nother:4"), Usable(0)])
def test_events_that_are_not_as_expected_change_nothing(event: Event) -> None:
    job = after(BEGUN, started(9, "b"))
    assert job.after([event])[0] == job


def test_a_job_can_save_once_it_has_come_to_an_elastic_function_or_has_a_checkpoint() -> None:
    plain = after(BEGUN, started(0, "a"), world(2), released(0))
    assert not plain.can_save
    for event in Ready(0, 1), Checkpointed(0, 1, 1, 0.1):
        assert plain.after([event, BEGUN])[0].can_save


def test_progress_can_be_written_down() -> None:
    reports = progress(1, 1, 2), progress(2, 2, 2)
    job = after(BEGUN, started(0, "a"), world(2), *reports, Restarting("r", 0.0, 1, 3, True))
    for each in job.after([Resumed(1, 1, 2, 0.5)])[0], JobProgress():
        assert JobProgress.from_json(written(each)) == each


def test_what_no_job_of_its_size_can_have_changes_nothing() -> None:
    job = after(BEGUN, *(started(number, str(number)) for number in range(4)))
    assert job.after([world(3), progress(1, 1, 3)], most=2) == (job, 2)
    assert job.after([started(5, "e")], most=2) == (job, 1)  # old and new workers of two
    assert job.after([started(5, "e")], most=3)[0] != job


@pytest.mark.parametrize(
    "change",
    [
        {"step": 2**53},
        {"pauses": [1.0] * 11},
        {"begun": -1.0},
        {"paces": [{"size": 2**31, "steps": 1.0, "seconds": 1.0}]},
        {"run": {"workers": [[1, "h\nother:4", "a"]]}},
    ],
)
def test_progress_that_no_events_can_lead_to_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        JobProgress.from_json(written(JobProgress()) | json.loads(json.dumps(change)))


def test_the_cost_of_a_resize_starts_with_the_prior() -> None:
    assert JobProgress().resize_cost == PRIOR_COST
    assert JobProgress(pauses=(1.0, 1.0, 1.0)).resize_cost == (PRIOR_COST + 3) / 4


def test_the_cost_of_a_start_is_the_time_until_the_first_step() -> None:
    begun = replace(BEGUN, time=100.0)
    job = after(begun, world(1), progress(120, 1, 1), progress(180, 2, 1))
    assert (job.starts, job.begun) == ((20.0,), None)
    assert job.start_cost == (PRIOR_COST + 20.0) / 2
    assert job.after([begun])[0].start_cost == job.start_cost  # not started yet
    assert after(begun, progress(90, 1, 1)).starts == (0.0,)  # the clock was set back
    assert JobProgress(starts=(1e9,)).start_cost == MAX_START_COST


def test_speed_is_relative_to_one_worker() -> None:
    paces = (Pace(2, 80, 40), Pace(3, 5, 40), Pace(4, 120, 40), Pace(5, 80, 20))
    known = JobProgress(paces=paces)
    assert (known.speedup, known.step_time) == (((2, 2.0), (4, 3.0)), 1.0)  # of others too little is known
    assert JobProgress(paces=paces[:2]).speedup == ()
    assert JobProgress(paces=paces[1:2]).step_time is None


def test_workers_that_fail_are_counted() -> None:
    job = after(BEGUN, failed(1, "0"), failed(1, "0"))
    assert job.losses == 2
    old = written(job)
    del old["losses"]  # as an earlier version has written it
    assert JobProgress.from_json(old).losses == 0


def failed(worker: int, device: str) -> Event:
    return Failed(worker, "h", 0, device, 0, 1, retry_after=8.0, time=2.0)


def test_devices_whose_workers_failed_are_suspended_until_they_are_tried_again() -> None:
    job = after(BEGUN, started(1, "a"), failed(1, "a"))
    assert job.suspended == (("h", "a", 10.0),)
    assert JobProgress.from_json(written(job)) == job
    assert job.after([started(2, "a")])[0].suspended == ()
    assert job.after([BEGUN])[0].suspended == ()
    assert after(BEGUN, failed(1, "x")).suspended == ()  # it never had a worker


def test_a_job_suspends_no_more_devices_than_it_can_have_workers() -> None:
    happened = [
        event for at in range(9) for event in (started(at, f"d{at}"), failed(at, f"d{at}"), released(at))
    ]
    job, _ = JobProgress().after([BEGUN, *happened], most=4)
    assert [device for _, device, _ in job.suspended] == ["d5", "d6", "d7", "d8"]


@pytest.mark.parametrize(
    "then", [HostReachable("h2"), Launched(), NEXT, AllocationAccepted(2, 1, hosts=ALONE)]
)
def test_hosts_are_unreachable_until_they_are_back_or_the_job_has_them_no_more(then: Event) -> None:
    lost = HostUnreachable("h2", "x" * 1000, time=5.0), HostUnreachable("evil host", "x")
    assert after(BEGUN, *lost).unreachable == (("h2", 5.0, "x" * 300),)
    assert after(BEGUN, *lost, then).unreachable == ()


def test_what_its_program_can_use_is_what_it_has_said_last() -> None:
    said = [Usable(number) for number in (3, 2, 0)]
    assert run(*said).usable == 2
    assert run(*said, replace(BEGUN, pid=8)).usable is None
