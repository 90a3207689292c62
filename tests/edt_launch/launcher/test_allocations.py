"""What a source of hosts is told of a job's devices."""

import time
from pathlib import Path

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.follower import SizeLimits, SourceFollower
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.plan import Plan
from simulated_hosts import SimulatedHosts

BOTH, LEFT = HostSlots("a", 2, ("3", "5")), HostSlots("a", 1, ("3",))


def test_a_device_is_in_use_until_its_worker_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceFollower.__init__, "__defaults__", (0.001,))  # seconds between questions
    source, paths = SimulatedHosts(BOTH), RunDir(tmp_path)
    paths.allocation.parent.mkdir(parents=True)
    allocations = Allocations(Plan(SizeLimits(1, 4), paths, source=source), lambda _: None, lambda _: None)

    def until(*told: object) -> None:
        while source.told[-len(told) :] != list(told):
            allocations.follow(0.0)
            time.sleep(0.001)

    until(("reserve", "a", "3", "5"), ("demand", 2))
    for worker, device in enumerate(BOTH.devices or ()):
        allocations.observe(stamped(events.Started(worker, "a", worker, device, worker)))
    source.found = (LEFT,)
    until(("demand", 3))
    allocations.observe(stamped(events.Released(1, "a", 1, "5")))
    until(("release", "a", "5"))
    allocations.close()
    assert source.told[-3:] == [("release", "a", "3"), ("demand", 0), ("close",)]
