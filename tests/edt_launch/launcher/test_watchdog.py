"""Who hangs: decided from heartbeats and a clock that the test holds."""

from dataclasses import replace

import pytest

from edt_launch.launcher.watchdog import (
    AFTER_TRAINING,
    ALONE_IDLE_FACTOR,
    COLLECTIVE,
    FLOORS,
    IDLE,
    MIN_COMPLETIONS,
    MISMATCH,
    OUTSIDE,
    SETTLED_IDLE,
    SETTLED_STEPS,
    SILENCE,
    STAGE_FACTOR,
    UNTRIED_LIMITS,
    Heartbeat,
    Times,
    Watch,
    mismatch,
    observe,
    overdue,
    tick,
)
from edt_launch.membership.protocol import MemberPhase, Slot, Worker

KNOWN = {stage: Times(MIN_COMPLETIONS, 0.1) for stage in FLOORS}


class Crew:
    """Members of a world, for long if their heartbeats say so, which come when the test says so."""

    def __init__(
        self, timeout: float | None = None, phase: MemberPhase = MemberPhase.ACTIVE, size: int = 2
    ) -> None:
        self.now = 50.0
        self.watch = Watch(timeout)
        self.workers = {
            i: Worker(i, Slot("a", i), phase, started_at=0.0, rank=i, generation=1) for i in range(size)
        }
        self.watch = tick(-1e7, self.watch, self.workers)
        self.watch = tick(self.now - 10.0, self.watch, self.workers)
        self.now -= 10.0
        self.pass_time(10.0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with the ticks that belong to it."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 1.0)
            self.watch = tick(self.now, self.watch, self.workers)
        self.watch = tick(self.now, self.watch, self.workers)

    def heartbeat(
        self,
        worker: int,
        stage: str,
        seconds: float,
        stages: dict[str, Times] = KNOWN,
        idle: float = 0.0,
        call: str = "",
    ) -> None:
        self.watch = observe(self.now, self.watch, Heartbeat(worker, 7, stage, seconds, stages, idle, call))

    def kill(self, worker: int) -> None:
        self.workers[worker] = replace(self.workers[worker], phase=MemberPhase.ENDING)
        self.pass_time(0.5)
        del self.workers[worker]

    def overdue(self) -> dict[int, str]:
        return dict(overdue(self.now, self.watch, self.workers.values()))


@pytest.mark.parametrize("phase", [MemberPhase.ACTIVE, MemberPhase.READY])
def test_who_falls_silent_hangs(phase: MemberPhase) -> None:
    crew = Crew(phase=phase)
    crew.heartbeat(0, "computing", 0.1)
    crew.pass_time(SILENCE)
    crew.heartbeat(1, "outside", 0.1)
    assert crew.overdue() == {}
    crew.pass_time(0.5)
    assert crew.overdue() == {
        0: "rank 0 on a has not been heard of for 30.5 s (longest so far 0.0 s, limit 30.0 s); "
        "it was computing then"
    }


def test_after_training_only_who_is_silent_for_very_long_hangs() -> None:
    crew = Crew(phase=MemberPhase.DONE)
    crew.heartbeat(0, "outside", 1e6, idle=1e6)
    crew.heartbeat(1, "reducing", 1e6)
    assert crew.overdue() == {}
    crew.pass_time(AFTER_TRAINING)
    assert crew.overdue() == {}
    crew.pass_time(1.0)
    assert set(crew.overdue()) == {0, 1}


def test_a_clock_that_has_jumped_forgives_everybody() -> None:
    crew = Crew()
    crew.heartbeat(0, "computing", 0.1)
    crew.now += 3600.0
    crew.watch = tick(crew.now, crew.watch, crew.workers)
    assert crew.overdue() == {}
    crew.pass_time(SILENCE + 1)
    assert set(crew.overdue()) == {0, 1}


@pytest.mark.parametrize("stage", FLOORS)
def test_a_stage_that_lasts_while_others_wait(stage: str) -> None:
    crew = Crew()
    crew.heartbeat(1, "reducing", 1000.0)
    crew.heartbeat(0, stage, FLOORS[stage])
    assert crew.overdue() == {}
    crew.heartbeat(0, stage, FLOORS[stage] + 1)
    floor = FLOORS[stage]
    assert crew.overdue() == {
        0: f"rank 0 on a has been {stage} for {floor + 1:.1f} s after step 7 while others wait "
        f"(longest so far 0.1 s, limit {floor:.1f} s)"
    }


@pytest.mark.parametrize(
    "count, size, limit",
    [
        (MIN_COMPLETIONS, 2, IDLE),
        (SETTLED_STEPS, 2, SETTLED_IDLE),
        (MIN_COMPLETIONS, 1, ALONE_IDLE_FACTOR * IDLE),
        (SETTLED_STEPS, 1, ALONE_IDLE_FACTOR * SETTLED_IDLE),
    ],
)
def test_who_does_nothing_between_two_steps_has_less_time(count: int, size: int, limit: float) -> None:
    crew, known = Crew(size=size), {"updating": Times(count, 0.1)}
    if size > 1:
        crew.heartbeat(1, "reducing", 1e6)
    crew.heartbeat(0, "updating", FLOORS["updating"] - 1, known, idle=min(limit, FLOORS["updating"] - 1))
    assert crew.overdue() == {}
    seconds = limit + 10
    crew.heartbeat(0, "updating", seconds, known, idle=limit + 1)
    assert (
        f"has been updating for {seconds:.1f} s, for {limit + 1:.1f} s of it without any work, after step 7"
        in crew.overdue()[0]
    )
    assert f"limit {limit:.1f} s" in crew.overdue()[0]


@pytest.mark.parametrize("timeout", [None, 60.0])
@pytest.mark.parametrize("stage", ["updating", OUTSIDE])
def test_who_says_that_it_gets_on_holds_others_up_for_as_long_as_it_likes(
    timeout: float | None, stage: str
) -> None:
    crew, known = Crew(timeout), {stage: Times(SETTLED_STEPS, 0.1)}
    since = crew.now
    for _ in range(200):
        crew.pass_time(30.0)
        crew.heartbeat(1, "reducing", crew.now - since)
        crew.heartbeat(0, stage, 30.0, known, idle=30.0)  # since its last heartbeat
        assert crew.overdue() == {}
    crew.pass_time(1.0)
    crew.heartbeat(0, stage, 1801.0, known, idle=1801.0)
    assert set(crew.overdue()) == {0}


def test_the_limit_is_learned_from_all_members() -> None:
    crew = Crew()
    crew.heartbeat(1, "reducing", 1.0, KNOWN | {"loading": Times(5, 40.0)})
    crew.heartbeat(0, "loading", STAGE_FACTOR * 40.0)
    assert crew.overdue() == {}
    crew.heartbeat(0, "loading", STAGE_FACTOR * 40.0 + 1)
    assert "longest so far 40.0 s, limit 400.0 s" in crew.overdue()[0]


@pytest.mark.parametrize("stage", FLOORS)
@pytest.mark.parametrize("timeout", [None, 3.0])
def test_a_stage_that_is_new_has_more_time(timeout: float | None, stage: str) -> None:
    crew = Crew(timeout)
    crew.heartbeat(1, "reducing", 1.0, {stage: Times(MIN_COMPLETIONS - 1, 0.1)})
    limit = max(UNTRIED_LIMITS[stage], FLOORS[stage] if timeout is None else timeout)
    crew.heartbeat(0, stage, limit, {})
    assert crew.overdue() == {}
    crew.heartbeat(0, stage, limit + 1, {})
    assert set(crew.overdue()) == {0}


def test_a_timeout_of_ones_own_replaces_the_floors() -> None:
    crew = Crew(timeout=3.0)
    crew.heartbeat(1, "reducing", 1.0)
    crew.heartbeat(0, "updating", 3.5)
    assert set(crew.overdue()) == {0}
    crew.pass_time(3.5)
    assert set(crew.overdue()) == {0, 1}
    crew.watch = replace(crew.watch, timeout=0.0)
    assert crew.overdue() == {}


def test_the_wait_at_the_rendezvous_is_no_part_of_a_stage() -> None:
    """The last heartbeat from there is all that is known of a new member for a moment."""
    crew = Crew()
    crew.heartbeat(0, "outside", 1e6)
    crew.workers = {i: replace(worker, generation=2) for i, worker in crew.workers.items()}
    crew.pass_time(0.5)
    crew.heartbeat(1, "reducing", 0.25)
    assert crew.overdue() == {}


def test_a_collective_that_all_are_in_ends_with_the_loss_of_one() -> None:
    crew = Crew()
    crew.heartbeat(0, "reducing", COLLECTIVE + 5.0)
    crew.heartbeat(1, "reducing", 5.0)  # it has just come
    assert not crew.overdue()
    crew.pass_time(COLLECTIVE)
    crew.heartbeat(0, "reducing", 2 * COLLECTIVE)
    crew.heartbeat(1, "reducing", COLLECTIVE + 5.0)
    ((worker, reason),) = crew.overdue().items()
    assert worker == 1
    assert "rank 1 on a has been in a collective for 305.0 s with all other members" in reason
    crew.kill(1)
    crew.heartbeat(0, "reducing", 2 * COLLECTIVE)
    assert not crew.overdue()  # it hears of the loss now
    crew.pass_time(COLLECTIVE + 5.0)
    crew.heartbeat(0, "reducing", 3 * COLLECTIVE)
    assert list(crew.overdue()) == [0]


@pytest.mark.parametrize(
    "calls, seconds, is_wrong",
    [
        (("average", "step"), MISMATCH, True),
        (("average", "step"), MISMATCH - 1, False),
        (("average", "average"), MISMATCH, False),
        (("average", ""), MISMATCH, False),
    ],
)
def test_workers_that_wait_in_different_collectives_wait_for_ever(
    calls: tuple[str, str], seconds: float, is_wrong: bool
) -> None:
    crew = Crew()
    for worker, call in enumerate(calls):
        crew.heartbeat(worker, "reducing", seconds, call=call)
    reason = mismatch(crew.now, crew.watch, crew.workers.values())
    assert (reason is not None) == is_wrong
    if reason is not None:
        assert "average (rank 0), step (rank 1)" in reason
