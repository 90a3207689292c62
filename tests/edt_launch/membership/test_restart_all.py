"""Worlds that are replaced as a whole: when the next one is begun, and when the one in force is ended."""

import pytest

from edt_launch.core.history import events
from edt_launch.membership import protocol
from edt_launch.membership.generations import fit
from edt_launch.membership.members import SUSPENSION, WorldLimits
from edt_launch.membership.policy import POLICIES
from edt_launch.membership.restart_all import FIRST_CHECKPOINT_TIMEOUT, RESIZE_GRACE
from simulated import of, slots

GRACE, END_GRACE = 120.0, 30.0


class Job:
    """The protocol with its clock, and the actions of the last event."""

    def __init__(self, min_size: int = 1, **limits: object) -> None:
        policy = POLICIES[protocol.Resize.RESTART_ALL]
        given = {"grace": GRACE, "end_grace": END_GRACE, **limits}
        state = policy.begin(WorldLimits(min_size, 8, resize=protocol.Resize.RESTART_ALL, **given), 0)  # type: ignore[arg-type]
        self.state, self.now, self._step = state, 0.0, policy.step

    def feed(self, event: protocol.Event, after: float = 0.0) -> list[protocol.Action]:
        self.now += after
        state, actions = self._step(self.now, self.state, event)
        self.state = state
        return actions

    def started(self, actions: list[protocol.Action]) -> list[int]:
        return [action.worker.id for action in actions if isinstance(action, protocol.Start)]

    def run(self, *counts: int) -> list[int]:
        """Have a world in these slots that has passed the gate; its workers by rank."""
        workers = self.started(self.feed(protocol.Desired(slots(*counts))))
        for worker in workers:
            self.feed(protocol.Ready(worker, 0))
        return workers

    def end(self, workers: list[int]) -> list[protocol.Action]:
        """Processes that were told to end have ended."""
        return [action for worker in workers for action in self.feed(protocol.Exited(worker, -15))]


def test_the_first_world_is_open_at_once_and_members_are_admitted_as_they_come() -> None:
    job = Job()
    actions = job.feed(protocol.Desired(slots(2)))
    assert of(protocol.Open, actions) == [protocol.Open(1, {0: 0, 1: 1}, None, "first world")]
    assert job.feed(protocol.Ready(1, 0)) == [protocol.Admit(1, 1)]
    assert job.feed(protocol.Ready(0, 0)) == [protocol.Admit(0, 1)]


def test_a_larger_world_takes_over_at_a_checkpoint_when_all_of_it_is_ready() -> None:
    job = Job()
    (old,) = job.run(1)
    actions = job.feed(protocol.Desired(slots(2)))
    assert of(events.ResizeDue, actions) == [events.ResizeDue(1, 2, FIRST_CHECKPOINT_TIMEOUT)]
    new = job.started(actions)
    assert len(new) == 2
    assert job.feed(protocol.Ready(new[0], 0)) == []
    assert job.feed(protocol.Ready(new[1], 0)) == [protocol.StopWorkers((old,), 2)]
    assert job.feed(protocol.Tick(), after=FIRST_CHECKPOINT_TIMEOUT - 1) == []
    assert job.feed(protocol.Held(old)) == [protocol.Terminate(old, grace=RESIZE_GRACE)]
    actions = job.feed(protocol.Exited(old, -15))
    assert of(protocol.Open, actions) == [protocol.Open(2, {new[0]: 0, new[1]: 1}, 1, "grown")]
    assert of(protocol.Admit, actions) == [protocol.Admit(new[0], 2), protocol.Admit(new[1], 2)]


def test_a_worker_that_comes_to_the_gate_late_is_told_of_a_resize_too() -> None:
    job = Job()
    job.feed(protocol.Desired(slots(2)))
    job.feed(protocol.Ready(1, 0))
    for worker in job.started(job.feed(protocol.Desired(slots(3)))):
        job.feed(protocol.Ready(worker, 0))
    assert job.feed(protocol.Ready(0, 0)) == [protocol.Admit(0, 1), protocol.StopWorkers((0,), 2)]


def test_a_checkpoint_that_another_worker_is_writing_is_finished_first() -> None:
    job = Job()
    old = job.run(2)
    new = job.started(job.feed(protocol.Desired(slots(3))))
    for worker in new:
        job.feed(protocol.Ready(worker, 0))
    job.feed(protocol.Saving(old[1], True))
    assert of(protocol.Terminate, job.feed(protocol.Held(old[0]))) == []
    assert len(of(protocol.Terminate, job.feed(protocol.Saving(old[1], False)))) == 2


def test_a_shrink_waits_for_a_checkpoint_no_longer_than_its_grace_and_a_growth_as_long_as_it_takes() -> None:
    for counts, limit in (((1,), GRACE), ((3,), FIRST_CHECKPOINT_TIMEOUT)):
        job = Job()
        old = job.run(2)
        for worker in job.started(job.feed(protocol.Desired(slots(*counts)))):
            job.feed(protocol.Ready(worker, 0))
        assert of(protocol.Terminate, job.feed(protocol.Tick(), after=limit - 1)) == []
        assert [
            action.worker for action in of(protocol.Terminate, job.feed(protocol.Tick(), after=2.0))
        ] == old  # type: ignore[attr-defined]
    job = Job()
    (old_one,) = job.run(1)
    job.feed(protocol.Saving(old_one, True))
    job.feed(protocol.Saving(old_one, False))
    for worker in job.started(job.feed(protocol.Desired(slots(2)))):
        job.feed(protocol.Ready(worker, 0))
    assert job.feed(protocol.Tick(), after=10 * FIRST_CHECKPOINT_TIMEOUT) == []


def test_a_resize_that_is_to_happen_at_once_waits_for_the_newcomers_alone() -> None:
    job = Job(resizes_at_once=True)
    (old,) = job.run(1)
    new = job.started(job.feed(protocol.Desired(slots(2))))
    job.feed(protocol.Ready(new[0], 0))
    assert protocol.Terminate(old, grace=RESIZE_GRACE) in job.feed(protocol.Ready(new[1], 0))


def test_without_a_gate_newcomers_are_started_when_the_old_ones_are_gone() -> None:
    job = Job()
    job.started(job.feed(protocol.Desired(slots(2))))
    assert job.started(job.feed(protocol.Desired(slots(1)))) == []
    actions = job.feed(protocol.Tick(), after=GRACE + 1)
    assert [action.worker for action in of(protocol.Terminate, actions)] == [0, 1]  # type: ignore[attr-defined]
    assert job.started(job.end([0, 1])) == [2]


def test_a_change_during_a_resize_replaces_the_next_world_alone() -> None:
    job = Job()
    (old,) = job.run(1)
    new = job.started(job.feed(protocol.Desired(slots(2))))
    actions = job.feed(protocol.Desired(slots(3)))
    assert of(protocol.Terminate, actions) == [protocol.Terminate(worker, at_once=True) for worker in new]
    assert len(job.started(actions)) == 3
    job.end(new)
    back = job.feed(protocol.Desired(slots(1)))
    assert len(of(protocol.Terminate, back)) == 3
    assert old in job.state.workers
    assert job.state.due_since is None


def test_a_failure_restarts_everybody_and_is_counted() -> None:
    job = Job(max_restarts=1)
    old = job.run(2)
    actions = job.feed(protocol.Exited(old[1], 1))
    assert of(protocol.Terminate, actions) == [protocol.Terminate(old[0], grace=RESIZE_GRACE)]
    new = job.started(actions)
    assert [job.state.workers[worker].attempt for worker in new] == [1, 1]
    opened = of(protocol.Open, job.end([old[0]]))
    assert opened == [protocol.Open(2, {new[0]: 0, new[1]: 1}, 2, "started again after a failure")]
    assert of(protocol.Terminate, job.feed(protocol.Exited(new[0], 1))) == [
        protocol.Terminate(new[1], grace=END_GRACE)
    ]
    (*_, finished) = job.end([new[1]])
    assert (finished.exit_code, finished.reason) == (1, "rank 0 on a failed, after 1 restart")


def test_resizes_are_not_counted() -> None:
    job = Job()
    (old,) = job.run(1)
    for size in (2, 1, 2):
        new = job.started(job.feed(protocol.Desired(slots(size))))
        for worker in new:
            job.feed(protocol.Ready(worker, 0))
        job.feed(protocol.Held(old))
        job.end([worker for worker in list(job.state.workers) if worker not in new])
        old = new[0]
    assert job.state.attempt == 0
    assert job.state.outcome is None


def test_a_lost_host_explains_all_failures_of_its_world() -> None:
    job = Job()
    old = job.run(1, 2)
    job.feed(protocol.Exited(old[0], 1))  # it has noticed before we have
    for worker in old[1:]:
        job.feed(protocol.Exited(worker, 255, is_gone=False, host_loss=protocol.HostLoss.LOST))
    assert job.state.outcome is None
    assert job.state.attempt == 0
    assert [slot.host for slot in job.state.lineups[job.state.newest]] == ["a"]
    job.feed(protocol.Ready(job.state.next_id - 1, 0))
    again = job.started(job.feed(protocol.Tick(), after=SUSPENSION + 1))
    assert len(again) == 3


def test_a_slot_that_lacks_something_is_done_without_while_there_are_others() -> None:
    job = Job()
    old = job.run(1, 2)
    for worker in old:
        job.feed(
            protocol.Exited(worker, 127, host_loss=protocol.HostLoss.UNFIT if worker == old[0] else None)
        )
    assert (job.state.outcome, job.state.attempt) == (None, 0)
    assert [slot.host for slot in job.state.lineups[job.state.newest]] == ["b", "b"]
    for worker in [*job.state.workers]:
        job.feed(protocol.Exited(worker, 127, host_loss=protocol.HostLoss.UNFIT))
    assert job.state.outcome is not None


def test_a_newcomer_that_fails_leaves_the_world_in_force_alone() -> None:
    job = Job()
    (old,) = job.run(1)
    new = job.started(job.feed(protocol.Desired(slots(2))))
    actions = job.feed(protocol.Exited(new[1], 1))
    assert of(events.Failed, actions)
    assert of(protocol.Terminate, actions) == [protocol.Terminate(new[0], at_once=True)]
    assert (job.state.outcome, job.state.attempt) == (None, 0)
    assert old in job.state.workers


def test_the_job_succeeds_when_all_have_ended_well_and_no_resize_comes_in_between() -> None:
    job = Job()
    old = job.run(2)
    job.feed(protocol.Exited(old[0], 0))
    assert job.started(job.feed(protocol.Desired(slots(3)))) == []
    (*_, finished) = job.feed(protocol.Exited(old[1], 0))
    assert finished.succeeded


@pytest.mark.parametrize("is_held_first", [True, False])
def test_rank_0_does_not_hold_for_a_resize_that_comes_no_more(is_held_first: bool) -> None:
    job = Job()
    old = job.run(2)
    new = job.started(job.feed(protocol.Desired(slots(3))))
    for worker in new[:2] if is_held_first else new:
        job.feed(protocol.Ready(worker, 0))
    happening = [protocol.Held(old[0]), protocol.Exited(old[1], 0)]
    actions = [job.feed(event) for event in (happening if is_held_first else happening[::-1])]
    assert protocol.Admit(old[0], 1) in actions[-1]


def test_too_few_slots_are_reported_and_time_out() -> None:
    job = Job(min_size=2, shortage_timeout=5.0)
    assert of(events.Waiting, job.feed(protocol.Desired(slots(1))))
    (*_, finished) = job.feed(protocol.Tick(), after=6.0)
    assert finished.exit_code == 1


def test_a_pause_waits_for_a_checkpoint_and_the_end_of_the_job_for_nothing() -> None:
    job = Job()
    (old,) = job.run(1)
    assert job.feed(protocol.PauseWanted("told")) == [protocol.StopWorkers((old,), 1)]
    assert job.feed(protocol.Held(old)) == [protocol.Terminate(old, grace=RESIZE_GRACE)]
    (*_, finished) = job.end([old])
    assert finished.left
    job = Job()
    (old,) = job.run(1)
    assert job.feed(protocol.Abort("told")) == [protocol.Terminate(old, grace=END_GRACE)]


def test_worlds_are_made_of_whole_nodes_and_have_allowed_sizes() -> None:
    limits = WorldLimits(2, 8, unit=2)
    assert fit(slots(3, 2), limits) == (
        protocol.Slot("a", 0),
        protocol.Slot("a", 1),
        protocol.Slot("b", 0),
        protocol.Slot("b", 1),
    )
    assert fit(slots(1, 1), limits) == ()
    assert len(fit(slots(3, 2), WorldLimits(1, 8, allowed=(1, 4)))) == 4
    assert len(fit(slots(3), WorldLimits(1, 2))) == 2
