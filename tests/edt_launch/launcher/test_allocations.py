"""What a job has; the rest is in test_job."""

import json

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.cluster.follower import Limits
from edt_launch.cluster.network import HostChecker
from edt_launch.core.atomic import write_atomically
from edt_launch.core.event_log import EventLog
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.plan import Plan


def allocation(generation, *slots):
    return Allocation(generation, tuple(HostSlots(f"127.0.0.{i}", n) for i, n in enumerate(slots, start=1)))


@pytest.fixture
def paths(tmp_path):
    paths = RunDir(tmp_path)
    paths.run.mkdir()
    return paths


@pytest.fixture
def make(paths):
    def make(**changes):
        plan = Plan(Limits(1, 8), paths, **changes)
        log = EventLog(paths.events, print)
        return Allocations(plan, log.write, HostChecker())

    return make


def events(paths):
    return [json.loads(line) for line in paths.events.read_text().splitlines()]


def in_force(paths):
    return parse(paths.allocation.read_text())


def test_a_cap_counts_for_what_the_file_says_later(make, paths, tmp_path):
    file = tmp_path / "theirs"
    allocations = make(follow=file)
    allocations.follow(0.0)
    assert allocations.current is None
    assert "missing" in allocations.rejection
    write_atomically(file, render(allocation(1, 1)))
    allocations.cap(2)
    allocations.follow(1.0)
    assert allocations.current == allocation(1, 1)
    write_atomically(file, render(allocation(2, 4)))
    allocations.follow(2.0)
    assert in_force(paths) == allocation(2, 2)
    write_atomically(file, render(allocation(3, 6)))
    allocations.follow(3.0)
    assert in_force(paths) == allocation(3, 2)  # the generation is told as followed
