"""The loop's decisions over any order of events that hypothesis can think of, crashes included."""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.loop.device_grant import devices_of
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import ENDED, HAS_LAUNCHER, State, Wanted
from examples import fewer
from simulated_pool import World, submit

OWNERS = ("ann", "bob", "eve")

CRASHES = st.none() | st.none() | st.integers(0, 8)
"""After how many actions the service is killed, if it is."""

PARTS = st.sampled_from(["follow", "read", "train", "release", "obey"])
SECONDS = st.sampled_from([0.5, 5.0, 20.0])
GOING_ON = {"parts": st.lists(st.sets(PARTS), min_size=2, max_size=6), "most": CRASHES, "seconds": SECONDS}


def stuck(world: World) -> list[JobRecord]:
    """Jobs that were asked to go a while ago and are still there; in a full pool some take turns."""
    asked = {State.STOPPING, State.PAUSING, State.SUSPENDING}
    rows = (row for row in world.rows.values() if row.state in asked)
    return [row for row in rows if row.asked is not None and world.now - row.asked > 60]


class Pool(RuleBasedStateMachine):
    @initialize(devices=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def begin(self, devices: list[int]) -> None:
        hosts = [HostRecord(f"h{i}", tuple(str(d) for d in range(count))) for i, count in enumerate(devices)]
        self.world = World(hosts)
        self.count = 0
        for owner in OWNERS[:2]:
            self.submit(owner, 1, 3, 0)
        self.world.step()
        for id_ in self.world.processes:
            self.world.begin(id_)
            self.world.read(id_)
            self.world.follow(id_)

    # What users and administrators do.

    @rule(
        owner=st.sampled_from(OWNERS), low=st.integers(1, 3), more=st.integers(0, 4), tier=st.integers(0, 1)
    )
    def submit(self, owner: str, low: int, more: int, tier: int) -> None:
        if self.count < 6:
            self.count += 1
            submit(self.world, f"j{self.count}", owner, low, low + more, tier)

    @rule(data=st.data(), wanted=st.sampled_from(Wanted))
    def wish(self, data: st.DataObject, wanted: Wanted) -> None:
        live = [id_ for id_, row in self.world.rows.items() if row.state not in ENDED]
        if live:
            id_ = data.draw(st.sampled_from(live))
            if self.world.rows[id_].wanted is not Wanted.STOP:
                self.world.rows[id_] = replace(self.world.rows[id_], wanted=wanted)

    @rule(data=st.data(), low=st.integers(1, 3), more=st.integers(0, 4))
    def change(self, data: st.DataObject, low: int, more: int) -> None:
        live = [id_ for id_, row in self.world.rows.items() if row.state not in ENDED]
        if live:
            id_ = data.draw(st.sampled_from(live))
            self.world.rows[id_] = replace(self.world.rows[id_], min=low, max=low + more)

    @rule(data=st.data(), is_up=st.booleans(), is_draining=st.booleans())
    def host(self, data: st.DataObject, is_up: bool, is_draining: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.hosts)))
        host = self.world.hosts[name]
        self.world.hosts[name] = replace(host, is_up=is_up, is_draining=is_draining)

    @precondition(lambda self: self.world.rows)
    @rule(data=st.data())
    def hide(self, data: st.DataObject) -> None:
        """A job's files cannot be read, or can be again."""
        self.world.hidden ^= {data.draw(st.sampled_from(sorted(self.world.rows)))}

    # What the service does.

    @rule(seconds=st.sampled_from([0.0, 0.5, 5.0, 40.0]))
    def step(self, seconds: float) -> None:
        self.world.now += seconds
        self.world.step()

    # What jobs do.

    def running(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.world.processes)))

    def _go_on(self, parts: list[set[str]], most: int | None, seconds: float) -> None:
        """The service makes a step, perhaps its last; each launcher gets on by some parts of its work."""
        self.world.now += seconds
        self.world.step(most)
        for id_, part in zip(sorted(self.world.processes), parts, strict=False):
            if not self.world.processes[id_].has_begun:
                self.world.begin(id_)
            for what in sorted(part):  # what was read is followed a step later
                if id_ in self.world.processes:
                    getattr(self.world, what)(id_)

    # Several times, so that it is what happens most.
    go_on = rule(**GOING_ON)(_go_on)
    go_on_then = rule(**GOING_ON)(_go_on)
    go_on_again = rule(**GOING_ON)(_go_on)
    go_on_still = rule(**GOING_ON)(_go_on)
    go_on_for_long = rule(**GOING_ON)(_go_on)

    @precondition(lambda self: self.world.processes)
    @rule(data=st.data(), exit_code=st.sampled_from([0, 1, 3, 143]))
    def end(self, data: st.DataObject, exit_code: int) -> None:
        id_ = self.running(data)
        if self.world.processes[id_].has_begun:
            self.world.end(id_, exit_code)

    @precondition(lambda self: self.world.processes)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        self.world.kill(self.running(data))

    # What must always be so.

    @invariant()
    def no_device_is_used_twice(self) -> None:
        if hasattr(self, "world"):
            assert [d for d, count in Counter(self.world.in_use()).items() if count > 1] == []

    @invariant()
    def no_launcher_is_lost(self) -> None:
        if hasattr(self, "world"):
            for id_ in self.world.processes:
                assert self.world.rows[id_].state in HAS_LAUNCHER

    @invariant()
    def files_give_each_device_once(self) -> None:
        if hasattr(self, "world"):
            held = [
                device for id_ in self.world.processes for device in devices_of(self.world.files[id_].held)
            ]
            assert len(held) == len(set(held))

    def teardown(self) -> None:
        """Whatever has happened: when all goes on, every job runs, ends, or has a reason to wait."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for name, host in world.hosts.items():
            world.hosts[name] = replace(host, is_up=True, is_draining=False)
        world.settle()
        total = sum(len(host.devices) for host in world.hosts.values())
        assert stuck(world) == []
        for id_, row in world.rows.items():
            if row.state is State.RUNNING:
                assert len(world.processes[id_].workers) == row.size
        if not any(row.state in HAS_LAUNCHER for row in world.rows.values()):
            waiting = [row for row in world.rows.values() if row.state is State.QUEUED]
            assert all(row.min > total for row in waiting)


TestPool = Pool.TestCase
TestPool.settings = fewer(1 / 2, stateful_step_count=40)
