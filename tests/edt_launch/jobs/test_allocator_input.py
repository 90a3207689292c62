"""Rows, files and events in the allocator's terms."""

from dataclasses import replace
from typing import Any

import pytest

from edt_launch.allocator.model import HostDevices
from edt_launch.jobs.allocator_input import as_job, inputs, is_wanted
from edt_launch.jobs.device_grant import DeviceGrant
from edt_launch.jobs.observed import Launcher, ObservedJob, ObservedState
from edt_launch.jobs.progress import JobProgress, LauncherRun
from edt_launch.service.database.records import HostRecord, JobRecord, ShareRecord
from edt_launch.service.states import State, Wanted

ME = (7, 0.5)
HELD = (HostDevices("h", ("0", "1")),)
LEFT = (HostDevices("h", ("2",)),)
RECORD = JobRecord("j1", "ann", ("x",), 2, 4, 100.0, priority=3, weight=2.0, running_since=150.0)


def job(state: State, **fields: Any) -> ObservedJob:
    run = LauncherRun(*ME, min_np=1, max_np=4, following=1)
    launcher = Launcher(is_alive=state is not State.QUEUED, identity=ME)
    record = replace(RECORD, state=state, **fields)
    return ObservedJob(record, DeviceGrant(2, HELD, LEFT), JobProgress(run), launcher)


def test_one_that_runs_holds_what_its_file_says_and_what_it_has_not_left() -> None:
    asked = as_job(job(State.RUNNING), protected=300.0)
    assert (asked.held, asked.leaving) == (HELD, LEFT)
    assert (asked.min, asked.max, asked.tier, asked.weight, asked.started) == (2, 4, 3, 2.0, 150.0)
    assert (asked.protected, asked.waiting_since, asked.resize_cost) == (300.0, None, 5.0)


def test_one_that_waits_holds_nothing() -> None:
    asked = as_job(job(State.QUEUED), protected=300.0)
    assert (asked.held, asked.leaving, asked.started, asked.waiting_since) == ((), (), None, 100.0)
    assert as_job(job(State.QUEUED, waiting_since=130.0), 300.0).waiting_since == 130.0


@pytest.mark.parametrize("state", [State.PAUSING, State.STOPPING, State.SUSPENDING])
def test_one_on_its_way_out_wants_nothing_and_keeps_what_it_uses(state: State) -> None:
    asked = as_job(job(state), protected=300.0)
    assert (asked.min, asked.max, asked.held) == (0, 0, ())
    assert asked.leaving == (HostDevices("h", ("0", "1", "2")),)


def test_one_that_cannot_be_looked_at_wants_what_it_has() -> None:
    hidden = replace(job(State.RUNNING, min=1), is_hidden=True)
    (asked,) = inputs(200.0, ObservedState(), [hidden])[1]
    assert (asked.min, asked.max, asked.held, asked.leaving) == (2, 2, HELD, LEFT)
    assert not is_wanted(replace(job(State.QUEUED), is_hidden=True))


@pytest.mark.parametrize("usable, expected", [(3, (2, 3)), (9, (2, 4)), (1, (1, 1))])
def test_a_job_gets_no_more_than_its_program_can_use(usable: int, expected: tuple[int, int]) -> None:
    one = job(State.RUNNING)
    assert one.run is not None
    asked = as_job(replace(one, progress=JobProgress(replace(one.run, usable=usable))), 300.0)
    assert (asked.min, asked.max) == expected


@pytest.mark.parametrize(
    "low, high, expected", [(1, 2, (1, 2)), (3, 9, (3, 4)), (5, 9, (4, 4)), (1, 1, (1, 1))]
)
def test_bounds_count_as_far_as_the_launcher_goes_along(
    low: int, high: int, expected: tuple[int, int]
) -> None:
    asked = as_job(job(State.RUNNING, min=low, max=high), protected=300.0)
    assert (asked.min, asked.max) == expected


def test_who_is_wanted() -> None:
    assert is_wanted(job(State.RUNNING))
    assert is_wanted(job(State.QUEUED))
    assert not is_wanted(job(State.QUEUED, wanted=Wanted.PAUSE))
    assert not is_wanted(replace(job(State.QUEUED), launcher=Launcher(has_leftovers=True)))
    assert not is_wanted(replace(job(State.RUNNING), launcher=Launcher()))


def test_users_without_a_place_hang_below_the_root() -> None:
    shares = (ShareRecord("", None), ShareRecord("lab", weight=3.0))
    fields = ObservedState(hosts=(HostRecord("h", ("0", "1"), is_draining=True),), shares=shares)
    cluster, asked = inputs(200.0, fields, [job(State.RUNNING), job(State.PAUSED)])
    assert [(owner.name, owner.parent, owner.weight) for owner in cluster.owners] == [
        ("", None, 1.0),
        ("lab", "", 3.0),
        ("ann", "", 1.0),
    ]
    assert [(host.name, host.is_draining) for host in cluster.hosts] == [("h", True)]
    assert [one.id for one in asked] == ["j1", "j1"]
