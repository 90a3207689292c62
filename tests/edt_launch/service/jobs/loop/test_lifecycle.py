"""What becomes of one job: a table of states, desired states and launchers' ends."""

from dataclasses import replace
from typing import Any

import pytest

from edt_launch.core.control_protocol import Pause, Request, Stop
from edt_launch.core.errors import HOST_LOST, ExitCode
from edt_launch.service.jobs.loop.lifecycle import (
    AGAIN,
    MAX_LOST,
    PAUSE_PATIENCE,
    STOP_PATIENCE,
    Transition,
    advance,
    progress,
)
from edt_launch.service.jobs.loop.observed import (
    Kill,
    Move,
    Note,
    ObservedJob,
    ObservedLauncher,
    Remember,
    Send,
    Sweep,
)
from edt_launch.service.jobs.loop.progress import JobProgress, LauncherRun
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted

RECORD = JobRecord("j1", "ann", ("python",), 1, 4, 100.0, size=2)
ME = (7, 0.5)


def job(
    state: State, wanted: Wanted = Wanted.RUN, exit_code: int | None = None, **launcher: Any
) -> ObservedJob:
    run = LauncherRun(*ME, size=2, began=150.0, exit_code=exit_code, message="said")
    record = replace(RECORD, state=state, wanted=wanted)
    return ObservedJob(
        record, progress=JobProgress(run), launcher=ObservedLauncher(**{"identity": ME, **launcher})
    )


def alive(state: State, wanted: Wanted = Wanted.RUN, **fields: float) -> ObservedJob:
    one = job(state, wanted, is_alive=True)
    return replace(one, record=replace(one.record, **fields))


def states(transition: Transition) -> list[State]:
    return [action.to for action in transition.actions if isinstance(action, Move)]


def requests(transition: Transition) -> list[Request]:
    return [action.request for action in transition.actions if isinstance(action, Send)]


@pytest.mark.parametrize(
    "before, wanted, after",
    [
        (State.QUEUED, Wanted.RUN, []),
        (State.QUEUED, Wanted.STOP, [State.STOPPED]),
        (State.QUEUED, Wanted.PAUSE, [State.PAUSED]),
        (State.PAUSED, Wanted.RUN, [State.QUEUED]),
        (State.PAUSED, Wanted.STOP, [State.STOPPED]),
        (State.PAUSED, Wanted.PAUSE, []),
    ],
)
def test_without_a_launcher_a_job_is_at_once_as_desired(
    before: State, wanted: Wanted, after: list[State]
) -> None:
    assert states(advance(200.0, job(before, wanted))) == after


@pytest.mark.parametrize(
    "before, wanted, after, asked",
    [
        (State.RUNNING, Wanted.STOP, State.STOPPING, Stop("stop-200.0")),
        (State.STARTING, Wanted.PAUSE, State.PAUSING, Pause("pause-200.0")),
        (State.SUSPENDING, Wanted.PAUSE, State.PAUSING, Pause("pause-200.0")),
        (State.PAUSING, Wanted.STOP, State.STOPPING, Stop("stop-200.0")),
    ],
)
def test_a_launcher_is_asked_until_it_accepts(
    before: State, wanted: Wanted, after: State, asked: Request
) -> None:
    transition = advance(200.0, alive(before, wanted))
    assert (states(transition), requests(transition)) == ([after], [asked])
    assert advance(200.0 + AGAIN / 2, transition.job).actions == ()
    assert requests(advance(200.0 + AGAIN, transition.job)) == [asked]
    launcher = replace(transition.job.launcher, accepted=asked.id)
    assert advance(200.0 + AGAIN, replace(transition.job, launcher=launcher)).actions == ()


@pytest.mark.parametrize(
    "state, waited, action",
    [
        (State.PAUSING, PAUSE_PATIENCE - 1, Send("j1", Pause("pause-200.0"))),
        (State.SUSPENDING, PAUSE_PATIENCE, Send("j1", Stop("stop-200.0"))),
        (State.STOPPING, STOP_PATIENCE[0] - 1, Send("j1", Stop("stop-200.0"))),
        (State.STOPPING, RECORD.grace + STOP_PATIENCE[0], Send("j1", Stop("kill-200.0", at_once=True))),
        (State.STOPPING, RECORD.grace + STOP_PATIENCE[1], Kill("j1")),
        (State.PAUSING, PAUSE_PATIENCE + RECORD.grace + STOP_PATIENCE[1], Kill("j1")),
    ],
)
def test_one_that_does_not_end_needs_more(state: State, waited: float, action: Send | Kill) -> None:
    one = alive(state, asked=200.0, signalled=200.0)
    assert advance(200.0 + waited, one).actions[-1:] == (action,)
    if waited - RECORD.grace in STOP_PATIENCE:  # though it has said that it will end
        accepted = replace(one, launcher=replace(one.launcher, accepted="stop-200.0"))
        assert advance(200.0 + waited, accepted).actions[-1:] == (action,)


def test_the_first_process_of_this_launcher_makes_it_running() -> None:
    after = advance(200.0, alive(State.STARTING))
    assert states(after) == [State.RUNNING]
    assert after.job.record.started == 150.0
    other = replace(alive(State.STARTING), launcher=ObservedLauncher(is_alive=True, identity=(8, 0.5)))
    assert advance(200.0, other).actions == ()


@pytest.mark.parametrize("is_driven, after", [(True, [State.RUNNING]), (False, [])])
def test_a_driver_makes_it_running_long_before_it_trains(is_driven: bool, after: list[State]) -> None:
    one = replace(alive(State.STARTING), progress=JobProgress(LauncherRun(*ME, is_driven=is_driven)))
    assert states(advance(200.0, one)) == after


@pytest.mark.parametrize(
    "can_save, restarts, told",
    [(True, 0, "have left, their state is saved"), (False, 1, "cannot save its work, and begins again")],
)
def test_a_job_that_could_not_save_begins_again(can_save: bool, restarts: int, told: str) -> None:
    one = job(State.SUSPENDING, exit_code=5)
    after = advance(200.0, replace(one, progress=replace(one.progress, can_save=can_save))).job
    assert told in after.record.reason
    assert after.record.restarts == restarts == progress(after)["restarts"]


def test_a_job_has_the_exit_code_of_its_program_and_its_run_time() -> None:
    one = job(State.STARTING, exit_code=1)
    assert one.progress.run is not None
    own = replace(one.progress.run, worker_exit_code=143)
    after = advance(200.0, replace(one, progress=JobProgress(own))).job.record
    assert (after.state, after.exit_code, after.started, after.ended) == (State.FAILED, 143, 150.0, 200.0)
    assert after.reason == "a worker ended with exit code 143 (SIGTERM)"


def test_a_driver_that_failed_at_once_has_run() -> None:
    one = job(State.STARTING, exit_code=1)
    assert one.progress.run is not None
    driven = JobProgress(replace(one.progress.run, began=None, is_driven=True), begun=140.0)
    assert advance(200.0, replace(one, progress=driven)).job.record.started == 140.0


def test_a_job_that_ended_unseen_has_the_time_of_its_last_event() -> None:
    one = job(State.RUNNING, exit_code=0)
    unseen = replace(one, progress=replace(one.progress, heard=160.0))
    after = advance(1000.0, unseen)
    assert (after.job.record.state, after.job.record.ended) == (State.SUCCEEDED, 160.0)
    assert [one.change.time for one in after.actions if isinstance(one, Remember)] == [160.0]


@pytest.mark.parametrize("wanted, after", [(Wanted.RUN, []), (Wanted.STOP, [State.STOPPED])])
@pytest.mark.parametrize("before", [State.STARTING, State.RUNNING])
@pytest.mark.parametrize("exit_code", [5, 143, None])
def test_what_was_left_or_lost_goes_back_to_the_queue(
    before: State, exit_code: int | None, wanted: Wanted, after: list[State]
) -> None:
    transition = advance(200.0, job(before, wanted, exit_code))
    assert states(transition) == [State.QUEUED, *after]
    assert transition.job.record.size == 0
    assert [action.change.after for action in transition.actions if isinstance(action, Remember)] == [0]


def test_how_it_ended_is_not_known_before_all_of_its_events_are_read() -> None:
    transition = advance(200.0, replace(job(State.RUNNING), is_behind=True))
    assert [type(action) for action in transition.actions] == [Note]
    assert advance(201.0, transition.job).actions == ()
    swept = replace(transition.job, launcher=ObservedLauncher(identity=ME, has_leftovers=True))
    assert [type(action) for action in advance(202.0, swept).actions] == [Sweep]


@pytest.mark.parametrize(
    "before, exit_code, after",
    [
        (State.RUNNING, 0, State.SUCCEEDED),
        (State.PAUSING, 0, State.SUCCEEDED),
        (State.RUNNING, 1, State.FAILED),
        (State.STARTING, 3, State.FAILED),
        (State.STARTING, 6, State.QUEUED),
        (State.PAUSING, 5, State.PAUSED),
        (State.PAUSING, None, State.PAUSED),
        (State.SUSPENDING, 5, State.QUEUED),
        (State.STOPPING, 143, State.STOPPED),
        (State.STOPPING, None, State.STOPPED),
        (State.STOPPING, 5, State.STOPPED),
    ],
)
@pytest.mark.parametrize("has_said_so", [True, False])
def test_how_a_launcher_ends_decides(
    before: State, exit_code: int | None, after: State, has_said_so: bool
) -> None:
    wanted = {State.PAUSING: Wanted.PAUSE, State.STOPPING: Wanted.STOP}.get(before, Wanted.RUN)
    if has_said_so:
        one = job(before, wanted, exit_code)
    else:  # its last event could not be written
        one = job(before, wanted, exit_code=None)
        one = replace(one, launcher=ObservedLauncher(identity=ME, exit_code=exit_code, message="said"))
    transition = advance(200.0, one)
    assert states(transition) == [after]
    if after is State.FAILED:
        assert (transition.job.record.exit_code, transition.job.record.failure) == (exit_code, "said")
        assert transition.job.record.reason == (
            "it could not start" if exit_code == 3 else "it ended with an error"
        )


def test_a_last_message_can_be_stored_whatever_the_job_writes() -> None:
    one = job(State.RUNNING, exit_code=1)
    run = replace(one.progress.run or LauncherRun(), message="a\0b\ud800c")
    transition = advance(200.0, replace(one, progress=JobProgress(run)))
    assert transition.job.record.failure == "a?b?c"


def test_one_that_cannot_be_looked_at_is_left_as_it_is_and_says_why() -> None:
    trouble = "its files cannot be read: Input/output error"
    hidden = replace(job(State.RUNNING, Wanted.STOP), trouble=trouble)
    transition = advance(200.0, hidden)
    assert transition.actions == (Note(hidden.record.id, {"trouble": trouble}),)
    assert advance(201.0, transition.job).actions == ()
    readable = replace(transition.job, trouble="", launcher=ObservedLauncher(is_alive=True))
    found = advance(202.0, readable)
    assert found.actions[0] == Note(hidden.record.id, {"trouble": ""})
    assert states(found) == [State.STOPPING]


def test_one_that_takes_turns_says_so_and_is_run_as_any_other() -> None:
    slow = replace(alive(State.RUNNING, Wanted.STOP), is_slow=True)
    noted, stopped, *_ = advance(200.0, slow).actions
    assert isinstance(noted, Note)
    assert "takes turns with other such jobs" in noted.fields["delay"]
    assert isinstance(stopped, Move)
    recovered = replace(slow, is_slow=False, record=replace(slow.record, **noted.fields))
    assert advance(201.0, recovered).actions[0] == Note("j1", {"delay": ""})


def test_what_is_lost_too_often_has_failed() -> None:
    one = job(State.RUNNING)
    lost = replace(one, record=replace(one.record, launchers_lost=MAX_LOST))
    transition = advance(200.0, lost)
    assert states(transition) == [State.FAILED]
    assert f"{MAX_LOST} times at most" in (transition.job.record.failure or "")


@pytest.mark.parametrize(
    "size, exit_code, after",
    [(0, HOST_LOST, State.QUEUED), (2, HOST_LOST, State.FAILED), (0, 1, State.FAILED)],
    ids=["not reached", "lost later", "an error of the script"],
)
def test_one_whose_host_was_gone_before_it_began_is_started_again(
    size: int, exit_code: int, after: State
) -> None:
    one = job(State.RUNNING, exit_code=1)
    assert one.progress.run is not None
    run = replace(one.progress.run, size=size, worker_exit_code=exit_code)
    transition = advance(
        200.0, replace(one, progress=JobProgress(run, unreachable=(("n7", 190.0, "no route"),)))
    )
    assert states(transition) == [after]
    assert ("n7 was not reached (no route)" in transition.job.record.reason) == (after is State.QUEUED)


def test_nothing_is_decided_before_the_leftovers_are_gone() -> None:
    assert advance(200.0, job(State.RUNNING, has_leftovers=True)).actions == (Sweep("j1"),)


def test_one_that_was_perhaps_never_started_is_started_again() -> None:
    transition = advance(200.0, job(State.STARTING, identity=None))
    assert states(transition) == [State.QUEUED]
    assert transition.job.record.restarts == 0


def test_one_that_ended_before_it_began_has_failed_with_what_it_said() -> None:
    launcher = ObservedLauncher(exit_code=2, said="no such option")
    transition = advance(200.0, replace(job(State.STARTING), launcher=launcher))
    assert states(transition) == [State.FAILED]
    assert transition.job.record.failure == "edt-launch has ended with exit code 2: no such option"


@pytest.mark.parametrize(
    "state, exit_code, launcher",
    [
        (State.STARTING, -9, {"said": "no room"}),
        (State.STARTING, ExitCode.OUT_OF_RESOURCES, {"said": "no room"}),
        (State.RUNNING, -9, {"identity": ME}),
        (State.RUNNING, 120, {"identity": ME}),  # its output had no room
    ],
)
def test_one_that_was_killed_or_had_no_room_is_started_again(
    state: State, exit_code: int, launcher: dict[str, Any]
) -> None:
    one = replace(job(state), launcher=ObservedLauncher(exit_code=exit_code, **launcher))
    assert states(advance(200.0, one)) == [State.QUEUED]


def test_an_end_of_an_older_launcher_is_not_taken_for_that_of_the_newer() -> None:
    one = replace(job(State.RUNNING, exit_code=0), launcher=ObservedLauncher(identity=(8, 0.5)))
    assert states(advance(200.0, one)) == [State.QUEUED]


LIMITED = {"time_limit": 60.0, "running_since": 150.0, "ran": 20.0}


def limited(one: ObservedJob, **fields: Any) -> ObservedJob:
    return replace(one, record=replace(one.record, **(LIMITED | fields)))


@pytest.mark.parametrize(
    "now, state, fields, after",
    [
        (189.9, State.RUNNING, {}, None),
        (190.0, State.RUNNING, {}, State.STOPPING),
        (190.0, State.STARTING, {}, State.STOPPING),
        (190.0, State.SUSPENDING, {}, State.STOPPING),
        (190.0, State.RUNNING, {"time_limit": 0.0}, State.RUNNING),
    ],
)
def test_a_job_that_has_run_for_its_time_limit_is_asked_to_stop(
    now: float, state: State, fields: dict[str, float], after: State | None
) -> None:
    transition = advance(now, limited(alive(state), **fields))
    asked = [Stop(f"stop-{now}")] if after is State.STOPPING else []
    assert requests(transition) == asked
    assert transition.job.record.state == (after or state)


def test_the_end_by_a_time_limit_is_told() -> None:
    stopping = advance(190.0, limited(alive(State.RUNNING))).job
    assert stopping.record.reason == "it has run for its time limit of 0:01:00"
    gone = replace(stopping, launcher=ObservedLauncher(identity=ME))
    record = advance(191.0, gone).job.record
    assert (record.state, record.reason) == (State.STOPPED, "it has run for its time limit of 0:01:00")
    by_owner = replace(gone, record=replace(gone.record, wanted=Wanted.STOP))
    assert advance(191.0, by_owner).job.record.reason == "its owner has stopped it"


def test_only_time_with_devices_counts_towards_the_limit() -> None:
    paused = limited(job(State.PAUSING, Wanted.PAUSE, int(ExitCode.LEFT)))
    heard = replace(paused, progress=replace(paused.progress, heard=160.0, can_save=True))
    record = advance(900.0, heard).job.record
    assert (record.state, record.ran, record.running_since) == (State.PAUSED, 30.0, None)
    queued = limited(job(State.QUEUED), running_since=None)
    assert states(advance(900.0, queued)) == []
    assert states(advance(900.0, limited(queued, running_since=None, ran=60.0))) == [State.STOPPED]
