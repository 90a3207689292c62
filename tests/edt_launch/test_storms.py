"""Storms of changes against the membership protocol: a simulated cluster with a clock of its own."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edt_launch.membership import protocol
from examples import fewer
from simulated import Job, slots


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
        self.send(protocol.Desired(slots(2)))

    def send(self, event: protocol.Event) -> None:
        for action in self.job(event):
            match action:
                case protocol.Start(worker):
                    self.alive[worker.id] = "booting"
                case protocol.StopWorkers(workers):
                    assert all(self.alive[w] in ("training", "ready") for w in workers)
                    self.told.update(workers)
                case protocol.Assign(generation, assignments):
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
                case protocol.Cut(workers, generation):
                    assert generation == self.generation
                    assert all(self.alive[w] == "training" for w in workers)
                    self.told.update(workers)
                case protocol.Dismiss(worker) | protocol.Terminate(worker):
                    self.told.discard(worker)
                    self.alive[worker] = "ending"

    @rule(a=st.integers(0, 4), b=st.integers(0, 3))
    def change(self, a: int, b: int) -> None:
        if a + b:
            self.send(protocol.Desired(slots(a, b)))

    def some(self, data: st.DataObject, *states: str) -> int | None:
        candidates = sorted(w for w, s in self.alive.items() if s in states)
        return data.draw(st.sampled_from(candidates)) if candidates else None

    @rule(data=st.data())
    def boot(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "booting")) is not None:
            self.alive[worker] = "ready"
            self.send(protocol.Ready(worker, 0))

    @precondition(lambda self: self.told)
    @rule()
    def obey_stop(self) -> None:
        for worker in sorted(self.told):
            if self.alive.get(worker) == "training":
                self.alive[worker] = "ready"
                self.told.discard(worker)
                self.send(protocol.Ready(worker, 10))

    @rule()
    def receive_the_state(self) -> None:
        for worker in sorted(w for w, what in self.alive.items() if what == "training"):
            self.have_state.add(worker)
            self.send(protocol.Synced(worker))

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "ending")) is not None:
            del self.alive[worker]
            self.send(protocol.Exited(worker, 0))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 2)
    @rule(data=st.data(), exit_code=st.sampled_from([137, 1, 0]))
    def die(self, data: st.DataObject, exit_code: int) -> None:
        worker = self.some(data, "training")
        assert worker is not None
        del self.alive[worker]
        self.told.discard(worker)
        self.send(protocol.Exited(worker, exit_code))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 1)
    @rule(data=st.data())
    def get_a_notice(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "booting", "ready", "training")) is not None:
            self.send(protocol.Leaving(worker, "SIGTERM"))

    @precondition(lambda self: sum(s == "training" for s in self.alive.values()) > 2)
    @rule(data=st.data())
    def hang(self, data: st.DataObject) -> None:
        if (worker := self.some(data, "ready", "training")) is not None:
            self.send(protocol.Hung(worker, "is silent"))

    @rule(seconds=st.sampled_from([0.3, 6.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.job.now += seconds
        self.send(protocol.Tick())

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
            self.send(protocol.Tick())
            for worker, what in sorted(self.alive.items()):
                if what == "ending":
                    del self.alive[worker]
                    self.send(protocol.Exited(worker, 0))
                elif what == "booting":
                    self.alive[worker] = "ready"
                    self.send(protocol.Ready(worker, 0))
            self.receive_the_state()
            self.obey_stop()
        state = self.job.state
        if not state.finished and len(state.desired) >= state.limits.min_size:
            assert [w.phase for w in state.world] == [protocol.MemberPhase.ACTIVE] * len(state.world)
            reachable = {slot.key for slot in state.wanted(self.job.now)}
            if len(reachable) >= state.limits.min_size:
                assert {w.slot.key for w in state.world} == reachable


TestStorm = Storm.TestCase
TestStorm.settings = fewer(3 / 4, stateful_step_count=40)
