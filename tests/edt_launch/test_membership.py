"""The membership protocol, driven by simulated workers and a clock that the test holds."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edt_launch.members import Limits, Membership
from edt_launch.membership import GROWTH_INTERVAL, LEAVE_TIMEOUT, step
from edt_launch.protocol import (
    Abort,
    Action,
    Assign,
    AtDoor,
    Cut,
    Desired,
    Dismiss,
    Done,
    Event,
    Exited,
    Failed,
    Finish,
    Hung,
    Leaving,
    Left,
    Missing,
    Noticed,
    Phase,
    Slot,
    Start,
    Stop,
    Synced,
    Terminate,
    Tick,
    Waiting,
)
from edt_launch.suspension import FORGET, LONGEST, NOTICE_SUSPENSION, START_FAILURES, SUSPENSION


def slots(*counts: int, hosts: str = "ab") -> tuple[Slot, ...]:
    return tuple(Slot(host, i) for host, count in zip(hosts, counts, strict=False) for i in range(count))


class Job:
    """The protocol with its clock and the actions it has asked for."""

    def __init__(self, min_size: int = 1, max_size: int = 8) -> None:
        self.now = 100.0
        self.state = Membership(Limits(min_size, max_size))

    def __call__(self, event: Event) -> list[Action]:
        self.state, actions = step(self.now, self.state, event)
        return actions

    def grown_to(self, count: int) -> "Job":
        """Desired, started, at the door and assigned."""
        self(Desired(slots(count)))
        for worker in list(self.state.workers.values()):
            if worker.phase is Phase.STARTING:
                self(AtDoor(worker.id, 0))
        for worker in self.state.world:
            self(AtDoor(worker.id, 5)) if self.state.stop_sent else None
        assert [w.phase for w in self.state.world] == [Phase.ACTIVE] * count
        self.now += GROWTH_INTERVAL
        return self


def of(kind: type, actions: list[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, kind)]


def test_first_world_waits_for_every_worker() -> None:
    job = Job()
    assert [a.worker.slot for a in job(Desired(slots(2)))] == list(slots(2))
    assert job(AtDoor(0, 0)) == []
    (assign,) = job(AtDoor(1, 0))
    assert isinstance(assign, Assign)
    assert (assign.generation, [p.worker for p in assign.places], assign.previous_size) == (1, [0, 1], None)


def test_survivors_train_on_until_all_newcomers_are_ready() -> None:
    job = Job().grown_to(2)
    assert len(of(Start, job(Desired(slots(4))))) == 2
    assert job(AtDoor(2, 0)) == []
    assert job(AtDoor(3, 0)) == [Stop((0, 1), 2)]
    assert job(AtDoor(0, 7)) == []
    (assign,) = job(AtDoor(1, 7))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [0, 1, 2, 3]


def test_a_removal_does_not_wait_for_newcomers() -> None:
    job = Job().grown_to(2)
    actions = job(Desired((Slot("a", 0), Slot("b", 0), Slot("b", 1))))
    assert of(Stop, actions) == [Stop((0, 1), 2)]
    job(AtDoor(0, 3))
    assign, dismiss = job(AtDoor(1, 3))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [0]
    assert dismiss == Dismiss(1)


def test_slow_newcomers_hold_up_the_others_only_until_their_deadline() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(3)))
    assert job(AtDoor(1, 0)) == []
    job.now += job.state.limits.start_timeout + 1
    assert job(Tick()) == [Stop((0,), 2)]


def test_a_change_that_is_taken_back_starts_nothing_anew() -> None:
    job = Job().grown_to(2)
    job(Desired(slots(4)))
    assert job(Desired(slots(2))) == [Terminate(2), Terminate(3)]
    for worker in (2, 3):
        (left,) = job(Exited(worker, 143))
        assert isinstance(left, Left)
        assert left.worker.id == worker


def test_a_slot_is_filled_again_only_when_its_last_worker_is_gone() -> None:
    job = Job().grown_to(2)
    job(Desired(slots(1)))
    job(AtDoor(0, 1))
    job(AtDoor(1, 1))
    assert of(Start, job(Desired(slots(2)))) == []
    assert len(of(Start, job(Exited(1, 0)))) == 1


def test_changes_during_a_resize_are_part_of_it() -> None:
    job = Job().grown_to(4)
    assert of(Stop, job(Desired(slots(3))))
    job(AtDoor(0, 1))
    job(Desired(slots(1)))
    job(AtDoor(1, 1))
    job(AtDoor(2, 1))
    assign, *dismissed = job(AtDoor(3, 1))
    assert isinstance(assign, Assign)
    assert len(assign.places) == 1
    assert dismissed == [Dismiss(1), Dismiss(2), Dismiss(3)]


def test_a_worker_that_dies_takes_only_its_slot_with_it() -> None:
    job = Job().grown_to(3)
    failed, cut = job(Exited(1, 137))
    assert isinstance(failed, Failed)
    assert failed.worker.slot == Slot("a", 1)
    assert failed.retry_after == SUSPENSION
    assert cut == Cut((0, 2), 1)
    job(AtDoor(0, 9))
    (assign,) = job(AtDoor(2, 9))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [0, 2]
    assert assign.previous_size == 3
    job.now += SUSPENSION
    (start,) = job(Tick())
    assert isinstance(start, Start)
    assert start.worker.slot == Slot("a", 1)


def test_suspension_doubles_and_is_never_for_good() -> None:
    job = Job().grown_to(2)
    for failure in range(1, 12):
        newest = max(job.state.workers)
        job(Exited(newest, 1))
        job(AtDoor(0, failure))
        seconds = min(SUSPENSION * 2 ** (failure - 1), LONGEST)
        job.now += seconds - 0.1
        assert job(Tick()) == []
        job.now += 0.2
        assert len(of(Start, job(Tick()))) == 1


def test_a_worker_that_is_killed_before_the_first_world_costs_its_slot_for_a_while() -> None:
    job = Job()
    job(Desired(slots(2)))
    job(AtDoor(0, 0))
    for failure in range(1, START_FAILURES):
        failed, *_ = job(Exited(max(job.state.workers), 137))
        assert failed.retry_after == SUSPENSION * 2 ** (failure - 1)
        if failure == 1:
            assert len(job.state.world) == 1  # the other one need not wait
        job.now += failed.retry_after
        assert len(of(Start, job(Tick()))) == 1


def test_what_always_fails_before_training_ends_the_job() -> None:
    for exit_code, times in ((1, 1), (139, 1), (137, START_FAILURES)):
        job = Job(min_size=2)
        job(Desired(slots(2)))
        for _ in range(times):
            assert job.state.outcome is None
            job(Exited(max(job.state.workers), exit_code))
            job.now += 100
            job(Tick())
        assert job.state.outcome is not None
        assert "before training began" in job.state.outcome.reason


def test_a_newcomer_that_ends_well_does_not_end_the_job() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    (failed,) = job(Exited(1, 0))
    assert isinstance(failed, Failed)
    assert (failed.retry_after, job.state.outcome) == (SUSPENSION, None)


def test_a_member_that_comes_to_the_door_unasked_tells_the_others() -> None:
    job = Job().grown_to(3)
    assert job(AtDoor(1, 4)) == [Cut((0, 2), 1), Stop((0, 2), 2)]
    assert job(AtDoor(0, 4)) == []
    assert isinstance(job(AtDoor(2, 4))[0], Assign)


def test_nobody_begins_anew_while_the_state_is_saved() -> None:
    job = Job().grown_to(1)
    job(Leaving(0, "SIGTERM"))
    assert job(AtDoor(0, 5000)) == [Dismiss(0, saves=True)]
    assert job(Desired((Slot("b", 0),))) == []
    job.now += LEAVE_TIMEOUT
    assert job(Tick()) == [Terminate(0)]
    *_, finish = job(Exited(0, 137))
    assert isinstance(finish, Finish)
    assert finish.left


def test_a_first_world_that_never_comes_about_has_an_end() -> None:
    job = Job(min_size=2)
    job(Desired(slots(2)))
    job(AtDoor(0, 0))
    job.now += job.state.limits.start_timeout + 1
    assert of(Waiting, job(Tick()))
    job.now += job.state.limits.shortage_timeout
    job(Tick())
    assert job.state.outcome is not None


def test_the_state_moves_through_a_donor_when_every_slot_changes() -> None:
    job = Job().grown_to(2)
    job(Desired(slots(0, 2)))
    assert of(Stop, job(AtDoor(2, 0))) == []
    assert job(AtDoor(3, 0)) == [Stop((0, 1), 2)]
    job(AtDoor(0, 4))
    assign, dismiss = job(AtDoor(1, 4))
    assert isinstance(assign, Assign)
    assert dismiss == Dismiss(1)
    assert [p.worker for p in assign.places] == [0, 2, 3]
    assert of(Stop, job(Tick())) == [], "nobody else has the state"
    job.now += GROWTH_INTERVAL
    assert of(Stop, job(Synced(2))) == [Stop((0, 2, 3), 3)]


def test_the_farthest_survivor_becomes_rank_0() -> None:
    job = Job().grown_to(3)
    job(Exited(1, 137))
    job(AtDoor(0, 4))
    (assign,) = job(AtDoor(2, 5))
    assert isinstance(assign, Assign)
    assert {p.worker: p.rank for p in assign.places} == {2: 0, 0: 1}


def test_nobody_joins_once_training_is_done() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    assert job(Done(0)) == [Terminate(1)]
    assert isinstance(job(Exited(1, 143))[0], Left)
    assert job(Exited(0, 0)) == [Finish(True, "the training function has returned")]


def test_the_last_step_is_repeated_by_those_who_missed_it() -> None:
    job = Job().grown_to(3)
    job(Done(0))
    job(Exited(1, 137))
    (assign,) = job(AtDoor(2, 8))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [2]
    job(Done(2))
    job(Exited(0, 0))
    assert job(Exited(2, 0)) == [Finish(True, "the training function has returned")]


def test_failure_before_the_first_world_ends_the_job() -> None:
    job = Job()
    job(Desired(slots(2)))
    failed, terminate = job(Exited(0, 1))
    assert isinstance(failed, Failed)
    assert terminate == Terminate(1)
    left, finish = job(Exited(1, 143))
    assert isinstance(left, Left)
    assert isinstance(finish, Finish)
    assert not finish.succeeded


def test_failure_of_the_last_worker_with_the_state_ends_the_job() -> None:
    job = Job().grown_to(1)
    failed, finish = job(Exited(0, 1))
    assert isinstance(failed, Failed)
    assert isinstance(finish, Finish)
    assert not finish.succeeded
    assert "last that had the state" in finish.reason


def test_too_few_survivors_wait_for_a_limited_time() -> None:
    job = Job(min_size=2).grown_to(2)
    job(Exited(1, 137))
    (waiting,) = job(AtDoor(0, 1))
    assert isinstance(waiting, Waiting)
    job.state = replace(job.state, desired=slots(1))
    job.now += job.state.limits.shortage_timeout + 1
    assert job(Tick()) == [Terminate(0)]
    *_, finish = job(Exited(0, 143))
    assert isinstance(finish, Finish)
    assert "fewer than 2 workers" in finish.reason


def test_abort_ends_every_process_and_then_the_job() -> None:
    job = Job().grown_to(2)
    assert job(Abort("SIGTERM")) == [Terminate(0), Terminate(1)]
    job(Exited(0, 143))
    assert job(Exited(1, 143))[-1] == Finish(False, "SIGTERM")


def test_late_messages_of_workers_that_are_gone_change_nothing() -> None:
    job = Job().grown_to(2)
    before = job.state
    for event in (AtDoor(9, 3), Done(9), Exited(9, 1)):
        assert job(event) == []
    assert job.state == before


def test_devices_make_the_slot_so_that_losing_the_first_one_keeps_the_others() -> None:
    job = Job()
    job(Desired((Slot("a", 0, "0"), Slot("a", 1, "3"))))
    job(AtDoor(0, 0))
    job(AtDoor(1, 0))
    assert job(Desired((Slot("a", 0, "3"),))) == [Stop((0, 1), 2)]
    job(AtDoor(0, 1))
    assign, dismissed = job(AtDoor(1, 1))
    assert isinstance(assign, Assign)
    assert assign.places[0].worker == 1
    assert dismissed == Dismiss(0)


def test_a_worker_that_does_not_leave_is_ended() -> None:
    job = Job().grown_to(2)
    job(Desired(slots(1)))
    job(AtDoor(0, 1))
    assert Dismiss(1) in job(AtDoor(1, 1))
    job.now += LEAVE_TIMEOUT - 1
    assert job(Tick()) == []
    job.now += 1
    assert job(Tick()) == [Terminate(1)]
    assert job(Tick()) == []


def test_a_worker_that_does_not_leave_does_not_hold_up_the_end() -> None:
    job = Job().grown_to(2)
    job(Desired(slots(1)))
    job(AtDoor(0, 1))
    job(AtDoor(1, 1))
    assert job(Abort("SIGTERM")) == [Terminate(0), Terminate(1)]
    job = Job().grown_to(2)
    job(Desired(slots(1)))
    job(AtDoor(0, 1))
    job(AtDoor(1, 1))
    job(Done(0))
    job(Exited(0, 0))
    job.now += LEAVE_TIMEOUT
    assert job(Tick()) == [Terminate(1)]


def test_a_newcomer_without_the_state_cannot_carry_on() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    job(AtDoor(1, 0))
    job(AtDoor(0, 9))
    failed, terminate = job(Exited(0, 137))
    assert isinstance(failed, Failed)
    assert terminate == Terminate(1)
    assert job.state.outcome is not None
    assert "the last that had the state" in job.state.outcome.reason


def test_a_newcomer_that_has_received_the_state_carries_on() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    job(AtDoor(1, 0))
    job(AtDoor(0, 9))
    job(Synced(1))
    job(Exited(0, 137))
    (assign,) = job(AtDoor(1, 12))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [1]


def test_programs_without_an_elastic_function_run_to_their_own_ends() -> None:
    job = Job()
    job(Desired(slots(2)))
    assert job(Exited(1, 0)) == []
    (finish,) = job(Exited(0, 0))
    assert isinstance(finish, Finish)
    assert finish.succeeded
    assert "without calling an elastic function" in finish.reason


def test_failures_are_forgotten_after_a_while_and_with_the_slot() -> None:
    job = Job().grown_to(2)
    job(Exited(1, 1))
    job(AtDoor(0, 1))
    job.now += SUSPENSION + FORGET
    job(Tick())
    (failed, *_) = job(Exited(2, 1))
    assert isinstance(failed, Failed)
    assert failed.retry_after == SUSPENSION
    job(Desired(slots(1)))
    job(Desired(slots(2)))
    assert job.state.suspended == {}


def test_nobody_leaves_until_newcomers_make_up_the_minimum() -> None:
    job = Job(min_size=2).grown_to(2)
    actions = job(Desired((Slot("a", 0), Slot("b", 0))))
    assert of(Stop, actions) == []
    assert of(Stop, job(AtDoor(2, 0))) == [Stop((0, 1), 2)]


def test_a_world_that_would_only_grow_has_a_while_for_itself() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    job(AtDoor(1, 0))
    job(AtDoor(0, 1))
    job(Desired(slots(3)))
    assert job(AtDoor(2, 0)) == []
    assert job(Desired(slots(1))) == [Dismiss(2), Stop((0, 1), 3)], "a removal does not wait"
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    assert job(AtDoor(1, 0)) == [Stop((0,), 2)]


def test_a_worker_with_a_notice_leaves_and_its_slot_is_left_alone_for_a_while() -> None:
    job = Job().grown_to(3)
    noticed, stop = job(Leaving(1, "SIGTERM"))
    assert isinstance(noticed, Noticed)
    assert (noticed.worker.id, noticed.worker.notice) == (1, "SIGTERM")
    assert stop == Stop((0, 1, 2), 2)
    assert job(Leaving(1, "again")) == []
    job(AtDoor(0, 4))
    assert job(AtDoor(1, 4)) == [Dismiss(1)], "it does not wait for the others"
    (assign,) = job(AtDoor(2, 4))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [0, 2]
    assert len(of(Left, job(Exited(1, 0)))) == 1
    job.now += NOTICE_SUSPENSION - GROWTH_INTERVAL
    assert job(Tick()) == []
    job.now += GROWTH_INTERVAL
    (start,) = job(Tick())
    assert isinstance(start, Start)
    assert start.worker.slot == Slot("a", 1)


def test_a_newcomer_with_a_notice_is_ended() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(3)))
    job(AtDoor(2, 0))
    assert of(Terminate, job(Leaving(1, "SIGTERM"))) == [Terminate(1)]
    assert Dismiss(2) in job(Leaving(2, "SIGTERM"))


def test_a_notice_stops_the_world_even_if_too_few_stay() -> None:
    job = Job(min_size=2).grown_to(2)
    assert of(Stop, job(Leaving(1, "spot"))) == [Stop((0, 1), 2)]
    assert of(Dismiss, job(AtDoor(1, 3))) == [Dismiss(1)]
    (waiting,) = job(AtDoor(0, 3))
    timeout = job.state.limits.shortage_timeout
    missing = Missing(Slot("a", 1), "left: spot", NOTICE_SUSPENSION)
    assert waiting == Waiting(1, 2, timeout, 2, (missing,))
    assert job(Tick()) == [], "told once"
    job(Exited(1, 0))
    job.now += 1
    start, waiting = job(Desired((Slot("a", 0), Slot("b", 0))))
    assert isinstance(start, Start)
    assert waiting == Waiting(1, 2, timeout - 1, 2, (Missing(Slot("b", 0), "is starting"),))
    (assign,) = job(AtDoor(2, 0))
    assert isinstance(assign, Assign)
    assert job.state.shortage is None


def test_the_last_with_the_state_waits_for_an_heir_before_it_leaves() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(2)))
    assert of(Stop, job(Leaving(0, "SIGTERM"))) == []
    assert of(Stop, job(AtDoor(1, 0))) == [Stop((0,), 2)]
    (assign,) = job(AtDoor(0, 5))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [0, 1]
    assert of(Stop, job(Tick())) == []
    assert of(Stop, job(Synced(1))) == [Stop((0, 1), 3)]
    assert job(AtDoor(0, 6)) == [Dismiss(0)]


def test_when_the_last_with_the_state_leaves_the_job_ends() -> None:
    job = Job().grown_to(1)
    assert of(Stop, job(Leaving(0, "SIGTERM"))) == [Stop((0,), 2)]
    assert of(Dismiss, job(AtDoor(0, 5))) == [Dismiss(0, saves=True)]
    *_, finish = job(Exited(0, 0))
    assert finish == Finish(False, "rank 0 on a left (SIGTERM), the last with the state", left=True)


def test_when_all_leave_the_one_that_is_farthest_saves_the_state_and_is_waited_for() -> None:
    job = Job().grown_to(3)
    for worker in range(3):
        job(Leaving(worker, "SIGTERM"))
    actions = [action for worker in range(3) for action in job(AtDoor(worker, 5 + (worker == 1)))]
    assert of(Dismiss, actions) == [Dismiss(0), Dismiss(1, saves=True), Dismiss(2)]
    assert [type(action) for worker in (0, 2) for action in job(Exited(worker, 0))] == [Left, Left]
    *_, finish = job(Exited(1, 0))
    assert finish == Finish(False, "rank 1 on a left (SIGTERM), the last with the state", left=True)


def test_a_worker_that_hangs_is_killed_and_treated_like_a_dead_one() -> None:
    job = Job().grown_to(3)
    failed, cut, terminate, *_ = job(Hung(1, "is silent"))
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.retry_after) == ("is silent", SUSPENSION)
    assert cut == Cut((0, 2), 1)
    assert terminate == Terminate(1, at_once=True)
    assert job(Hung(1, "is silent")) == []
    job(AtDoor(0, 4))
    (assign,) = job(AtDoor(2, 4))
    assert isinstance(assign, Assign)
    assert len(of(Left, job(Exited(1, 137)))) == 1


def test_members_that_unsynced_newcomers_are_left_with_are_kept() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(0, 2)))
    job(AtDoor(1, 0))
    job(AtDoor(2, 0))
    job(AtDoor(0, 4))
    job(Exited(1, 137))
    job(AtDoor(2, 0))
    (assign,) = job(AtDoor(0, 4))
    assert isinstance(assign, Assign)
    assert [p.worker for p in assign.places] == [0, 2]


class Storm(RuleBasedStateMachine):
    """Allocation changes, boots, deaths, notices, hangs and the passing of time in any order.

    The machine plays the workers: it obeys Stop, Assign, Dismiss and Terminate, but when it likes.
    """

    @initialize(min_size=st.integers(1, 2))
    def begin(self, min_size: int) -> None:
        self.job = Job(min_size=min_size, max_size=6)
        self.alive: dict[int, str] = {}
        self.told: set[int] = set()
        self.have_state: set[int] = set()
        self.generation = 0
        self.send(Desired(slots(2)))

    def send(self, event: Event) -> None:
        for action in self.job(event):
            match action:
                case Start(worker):
                    self.alive[worker.id] = "booting"
                case Stop(workers):
                    assert all(self.alive[w] in ("training", "door") for w in workers)
                    self.told.update(workers)
                case Assign(generation, places):
                    assert generation > self.generation
                    self.generation = generation
                    assert all(self.alive[p.worker] == "door" for p in places), "assigned away from the door"
                    assert sorted(p.rank for p in places) == list(range(len(places)))
                    members = {p.worker for p in places}
                    self.have_state |= members if generation == 1 else set()
                    assert places[0].worker in self.have_state, "nobody has the state"
                    assert "training" not in self.alive.values(), "a world was formed beside another"
                    for worker in members:
                        self.alive[worker] = "training"
                        self.told.discard(worker)
                case Cut(workers, generation):
                    assert generation == self.generation
                    assert all(self.alive[w] == "training" for w in workers)
                    self.told.update(workers)
                case Dismiss(worker) | Terminate(worker):
                    self.told.discard(worker)
                    self.alive[worker] = "ending"

    @rule(a=st.integers(0, 4), b=st.integers(0, 3))
    def change(self, a: int, b: int) -> None:
        if a + b:
            self.send(Desired(slots(a, b)))

    def some(self, data: st.DataObject, *states: str) -> int | None:
        candidates = sorted(w for w, s in self.alive.items() if s in states)
        return data.draw(st.sampled_from(candidates)) if candidates else None

    @rule(data=st.data())
    def boot(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "booting")) is not None:
            self.alive[worker] = "door"
            self.send(AtDoor(worker, 0))

    @precondition(lambda self: self.told)
    @rule()
    def obey_stop(self) -> None:
        for worker in sorted(self.told):
            if self.alive.get(worker) == "training":
                self.alive[worker] = "door"
                self.told.discard(worker)
                self.send(AtDoor(worker, 10))

    @rule()
    def receive_the_state(self) -> None:
        for worker in sorted(w for w, what in self.alive.items() if what == "training"):
            self.have_state.add(worker)
            self.send(Synced(worker))

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "ending")) is not None:
            del self.alive[worker]
            self.send(Exited(worker, 0))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 2)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        worker = self.some(data, "training")
        assert worker is not None
        del self.alive[worker]
        self.told.discard(worker)
        self.send(Exited(worker, 137))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 1)
    @rule(data=st.data())
    def get_a_notice(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "booting", "door", "training")) is not None:
            self.send(Leaving(worker, "SIGTERM"))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 2)
    @rule(data=st.data())
    def hang(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "door", "training")) is not None:
            self.send(Hung(worker, "is silent"))

    @rule(seconds=st.sampled_from([0.3, 6.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.job.now += seconds
        self.send(Tick())

    @invariant()
    def a_slot_has_one_worker(self) -> None:
        if hasattr(self, "job"):
            keys = [w.slot.key for w in self.job.state.workers.values()]
            assert len(keys) == len(set(keys))

    def teardown(self) -> None:
        """Left alone, the job reaches the latest allocation: no change is ever lost."""
        if not hasattr(self, "job"):
            return
        for seconds in [50.0] * 60 + [1.0] * 10:
            self.job.now += seconds
            self.send(Tick())
            for worker, what in sorted(self.alive.items()):
                if what == "ending":
                    del self.alive[worker]
                    self.send(Exited(worker, 0))
                elif what == "booting":
                    self.alive[worker] = "door"
                    self.send(AtDoor(worker, 0))
            self.receive_the_state()
            self.obey_stop()
        state = self.job.state
        if not state.finished and len(state.desired) >= state.limits.min_size:
            assert [w.phase for w in state.world] == [Phase.ACTIVE] * len(state.world)
            reachable = {slot.key for slot in state.wanted(self.job.now)}
            if len(reachable) >= state.limits.min_size:
                assert {w.slot.key for w in state.world} == reachable


TestStorm = Storm.TestCase
TestStorm.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("event", [Tick(), Desired(slots(3))])
def test_deciding_again_changes_nothing(event: Event) -> None:
    job = Job().grown_to(3)
    assert job(event) == []
    before = job.state
    assert job(event) == []
    assert job.state == before
