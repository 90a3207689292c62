"""Storms of changes against the membership protocol: a simulated cluster with a clock of its own."""

import heapq
import random
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edt_launch.membership.members import Limits, Membership
from edt_launch.membership.protocol import (
    Assign,
    Cut,
    Desired,
    Dismiss,
    Event,
    Exited,
    Hung,
    Leaving,
    Phase,
    Ready,
    Slot,
    Start,
    Stop,
    Synced,
    Terminate,
    Tick,
)
from edt_launch.membership.step import step
from examples import fewer
from simulated import Job, slots

CHANGES = 1000
RATE = 5.0
"""Changes per simulated second."""

LARGEST = 6
HOSTS = ("a", "b")


class Cluster:
    """Workers that take their time to boot, to finish a step, to receive the state and to end."""

    def __init__(self, seed: int, min_size: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.state = Membership(Limits(min_size, LARGEST))
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = count()
        self.doing: dict[int, int] = {}
        """What each worker is doing, as a number: what was planned for what it did before is void."""
        self.worlds = 0
        self.deaths = 0
        self.is_calm = False
        self.every(0.25, lambda: self.send(Tick()))

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (self.now + seconds, next(self.numbers), action))

    def every(self, seconds: float, action: Callable[[], None]) -> None:
        def again() -> None:
            action()
            self.at(seconds, again)

        self.at(seconds, again)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.agenda[0][0] <= end:
            self.now, _, action = heapq.heappop(self.agenda)
            action()
        self.now = end

    def later(self, worker: int, low: float, high: float, event: Event) -> None:
        """The worker does something new, which will lead to an event."""
        doing = self.doing[worker] = next(self.numbers)

        def happen() -> None:
            if self.doing.get(worker) == doing:
                if isinstance(event, Exited):
                    del self.doing[worker]
                self.send(event)

        self.at(self.random.uniform(low, high), happen)

    def send(self, event: Event) -> None:
        self.state, actions = step(self.now, self.state, event)
        for action in actions:
            match action:
                case Start(worker):
                    self.later(worker.id, 0.3, 4.0, Ready(worker.id, 0))
                case Stop(workers) | Cut(workers):
                    for worker in workers:
                        self.later(worker, 0.01, 0.2, Ready(worker, self.worlds))
                case Assign(_, assignments):
                    self.worlds += 1
                    for place in assignments:
                        self.later(place.worker, 0.05, 0.3, Synced(place.worker))
                case Dismiss(worker):
                    self.later(worker, 0.05, 0.5, Exited(worker, 0))
                case Terminate(worker):
                    self.later(worker, 0.05, 0.5, Exited(worker, 143))

    def victim(self) -> int | None:
        """A member of the world whose loss leaves others with the state."""
        members = [w.id for w in self.state.world if w.has_state and not w.notice]
        return self.random.choice(members) if len(members) > 1 else None

    def trouble(self) -> None:
        """A worker dies, hangs, or gets a notice."""
        worker = self.victim()
        if self.is_calm or worker is None or self.state.workers[worker].phase is not Phase.ACTIVE:
            return
        self.deaths += 1
        kind = self.random.choice(["dies", "hangs", "leaves"])
        if kind == "dies":
            del self.doing[worker]
            self.send(Exited(worker, 137))
        else:
            self.send(Hung(worker, "is silent") if kind == "hangs" else Leaving(worker, "SIGTERM"))

    def change(self) -> None:
        """One host gets a slot more or less."""
        counts = [sum(slot.host == host for slot in self.state.desired) for host in HOSTS]
        host = self.random.randrange(2)
        counts[host] = max(0, counts[host] + self.random.choice([-1, 1]))
        if self.state.limits.min_size <= sum(counts) <= LARGEST:
            slots = (Slot(host, i) for host, number in zip(HOSTS, counts, strict=True) for i in range(number))
            self.send(Desired(tuple(slots)))


@pytest.mark.parametrize("min_size", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_last_of_a_thousand_changes_is_reached(seed: int, min_size: int) -> None:
    cluster = Cluster(seed, min_size)
    cluster.every(2.0, cluster.trouble)
    cluster.send(Desired((Slot("a", 0), Slot("b", 0))))
    for _ in range(CHANGES):
        cluster.change()
        cluster.run(cluster.random.expovariate(RATE))
    stormy, deaths, worlds = cluster.now, cluster.deaths, cluster.worlds
    assert not cluster.state.finished, cluster.state.outcome
    assert deaths > 10
    assert 10 < worlds < 2 * stormy + 2 * deaths
    cluster.is_calm = True
    cluster.run(15.0)
    world = cluster.state.world
    assert [w.phase for w in world] == [Phase.ACTIVE] * len(world)
    assert {w.slot.key for w in world} == {slot.key for slot in cluster.state.wanted(cluster.now)}


def test_a_storm_of_growth_and_shrinking_leaves_time_to_train() -> None:
    """Between two changes that only add workers a world has a second for itself."""
    cluster = Cluster(seed=0, min_size=1)
    for number in range(CHANGES):
        cluster.send(Desired(tuple(Slot("a", i) for i in range(1 + number % 2))))
        cluster.run(1 / RATE)
    assert cluster.worlds < 2 * cluster.now


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
                    assert all(self.alive[w] in ("training", "ready") for w in workers)
                    self.told.update(workers)
                case Assign(generation, assignments):
                    assert generation > self.generation
                    self.generation = generation
                    assert all(self.alive[p.worker] == "ready" for p in assignments), (
                        "assigned away from the rendezvous"
                    )
                    assert sorted(p.rank for p in assignments) == list(range(len(assignments)))
                    members = {p.worker for p in assignments}
                    self.have_state |= members if generation == 1 else set()
                    assert assignments[0].worker in self.have_state, "nobody has the state"
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
            self.alive[worker] = "ready"
            self.send(Ready(worker, 0))

    @precondition(lambda self: self.told)
    @rule()
    def obey_stop(self) -> None:
        for worker in sorted(self.told):
            if self.alive.get(worker) == "training":
                self.alive[worker] = "ready"
                self.told.discard(worker)
                self.send(Ready(worker, 10))

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
    @rule(data=st.data(), exit_code=st.sampled_from([137, 1, 0]))
    def die(self, data: st.DataObject, exit_code: int) -> None:
        worker = self.some(data, "training")
        assert worker is not None
        del self.alive[worker]
        self.told.discard(worker)
        self.send(Exited(worker, exit_code))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 1)
    @rule(data=st.data())
    def get_a_notice(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "booting", "ready", "training")) is not None:
            self.send(Leaving(worker, "SIGTERM"))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 2)
    @rule(data=st.data())
    def hang(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "ready", "training")) is not None:
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
                    self.alive[worker] = "ready"
                    self.send(Ready(worker, 0))
            self.receive_the_state()
            self.obey_stop()
        state = self.job.state
        if not state.finished and len(state.desired) >= state.limits.min_size:
            assert [w.phase for w in state.world] == [Phase.ACTIVE] * len(state.world)
            reachable = {slot.key for slot in state.wanted(self.job.now)}
            if len(reachable) >= state.limits.min_size:
                assert {w.slot.key for w in state.world} == reachable


TestStorm = Storm.TestCase
TestStorm.settings = fewer(3 / 4, stateful_step_count=40)
