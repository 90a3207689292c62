"""Jobs that do nothing keep their minimum, and say so."""

from dataclasses import replace

import pytest

from edt_launch.allocator.model import Binding, HostDevices, Reason
from edt_launch.core.history.events import Progress
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.idling import computed, explained, is_idle
from edt_launch.service.jobs.loop.observed import ObservedJob
from edt_launch.service.jobs.loop.progress import JobProgress
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State
from simulated_pool import World, submit

RECORD = JobRecord("j1", "ann", ("x",), 1, 4, 0.0, state=State.RUNNING, can_save=True, running_since=100.0)
JOB = ObservedJob(RECORD, DeviceGrant(1, (HostDevices("h", ("0", "1")),)), JobProgress(stepped=500.0))


@pytest.mark.parametrize(
    "job, expected",
    [
        (JOB, True),
        (replace(JOB, progress=JobProgress(stepped=701.0)), False),
        (replace(JOB, computed=701.0), False),
        (replace(JOB, record=replace(RECORD, running_since=701.0)), False),
        (replace(JOB, record=replace(RECORD, can_save=False)), False),
        (replace(JOB, record=replace(RECORD, state=State.PAUSING)), False),
        (replace(JOB, progress=JobProgress()), False),
        (replace(JOB, progress=JobProgress(), computed=500.0), True),
        (replace(JOB, trouble="its files cannot be read"), False),
    ],
)
def test_which_jobs_are_idle(job: ObservedJob, expected: bool) -> None:
    assert is_idle(1000.0, job, 300.0) is expected
    assert not is_idle(1000.0, job, 0.0)


def test_gpus_that_compute_are_no_idle_ones() -> None:
    known = {"j1": 900.0}
    assert computed(1000.0, [JOB], {("h", "0"): 0.0, ("h", "1"): 3.0}, known) == {"j1": 1000.0}
    idle = {("h", "0"): 0.0, ("h", "1"): 0.0}
    assert computed(1000.0, [JOB], idle, known) == known
    assert computed(1000.0, [JOB], idle, {}) == {"j1": 1000.0}
    assert computed(1000.0, [JOB], {("h", "0"): 0.0}, known) == {}


def test_a_job_that_idles_shrinks_at_once_and_grows_when_it_goes_on() -> None:
    world = World([HostRecord("h", ("0", "1", "2", "3"))])
    world.idle_timeout = 300.0
    submit(world, "j1", "ann")
    world.settle()
    world.event("j1", Progress(1, 0, 4, {}))
    world.settle()
    assert (world.sizes(), world.files["j1"].at_once) == ({"j1": 4}, False)
    world.now += 300.0
    world.step()
    assert (world.sizes(), world.files["j1"].at_once) == ({"j1": 1}, True)
    world.settle()
    assert world.sizes() == {"j1": 1}
    assert world.rows["j1"].reason.startswith("has its minimum of 1: it has completed no step")
    world.event("j1", Progress(2, 0, 1, {}))
    world.settle()
    assert (world.sizes(), world.files["j1"].at_once) == ({"j1": 4}, False)


@pytest.mark.parametrize(
    "binding, text, expected",
    [
        (Binding.HAND_OVER, "shrinks from 4 to 1", "shrinks from 4 to 1: it has completed no step"),
        (Binding.SHARE, "has 1: its fair share is 1.00", "has 1: its fair share is 1.00"),
    ],
)
def test_an_idle_job_says_why_it_has_its_size(binding: Binding, text: str, expected: str) -> None:
    told = explained(Reason(binding, 1.0, 1, (), text), 1800.0)
    assert told is not None
    assert told.text.startswith(expected)
    assert ("for 30m or longer" in told.text) is (binding is not Binding.SHARE)
