"""Moves of jobs onto fewer hosts."""

from dataclasses import replace

import pytest
from hypothesis import given

from edt_launch.allocator.decide import decide
from edt_launch.allocator.devices.packing import GAIN
from edt_launch.allocator.model import Cluster, Host, HostDevices, Job, Options
from pools import NOW, Pool, applied, pools, settled

HOSTS = tuple(Host(name, tuple("0123")) for name in "ab")
SCATTERED = Job(
    "j", "", 1, 4, 0.0, held=(HostDevices("a", ("0",)), HostDevices("b", ("0", "1", "2"))), started=0.0
)


LARGE = Job(
    *("k", "", 1, 5, 0.0),
    held=(HostDevices("a", ("1", "2", "3")), HostDevices("b", ("3",)), HostDevices("c", ("0",))),
    started=0.0,
)


def test_a_job_moves_onto_one_host_where_there_is_room():
    pool = Pool(Cluster(HOSTS), (SCATTERED,))
    plan, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert plan.assignments["j"] == (HostDevices("b", tuple("0123")),)
    assert plan.targets == {"j": 4}
    assert "moves its 4 workers onto b" in reasons["j"].text
    assert "which pays what a resize costs, 5 s" in reasons["j"].text
    assert settled(pool).job("j").held == plan.assignments["j"]


def test_not_before_that_has_cost_as_much_as_a_move():
    pool = Pool(Cluster(HOSTS), (replace(SCATTERED, started=NOW - 10.0),))
    assert pool.plan.assignments["j"] == SCATTERED.held
    assert pool.plan.again_at == NOW - 10.0 + SCATTERED.resize_cost / GAIN
    resized = replace(pool, jobs=(replace(SCATTERED, resized=NOW - 20.0),))
    assert resized.plan.again_at == NOW - 20.0 + SCATTERED.resize_cost / GAIN


@pytest.mark.parametrize("change", [{"is_draining": True}, {"is_up": False}], ids=str)
def test_not_while_something_else_changes(change):
    cluster = Cluster((*HOSTS, replace(Host("c", ("0", "1")), **change)))
    other = Job("k", "", 2, 2, 0.0, held=(HostDevices("c", ("0", "1")),), started=0.0)
    assert Pool(cluster, (SCATTERED, other)).plan.assignments["j"] == SCATTERED.held
    assert len(Pool(cluster, (SCATTERED,)).plan.assignments["j"]) == 1  # nobody is on that host


def test_not_right_after_something_else_has_changed():
    waiting = Job("k", "", 1, 1, NOW, waiting_since=NOW)
    pool = Pool(Cluster((Host("c", ("0",)), *HOSTS)), (SCATTERED, waiting))
    started = applied(pool)
    assert started.job("k").held == (HostDevices("c", ("0",)),)
    assert started.job("j").held == started.plan.assignments["j"] == SCATTERED.held
    assert started.plan.again_at == NOW + Options().resize_interval
    assert len(replace(started, now=started.plan.again_at).plan.assignments["j"]) == 1


def test_a_job_moves_onto_a_host_that_it_is_not_on_and_one_worker_stays():
    hosts = (*(Host(name, ("0",)) for name in "abc"), Host("large", tuple("01")))
    held = tuple(HostDevices(name, ("0",)) for name in "abc")
    pool = Pool(Cluster(hosts), (replace(SCATTERED, max=3, held=held),))
    assert pool.plan.assignments["j"] == (HostDevices("a", ("0",)), HostDevices("large", ("0", "1")))


def test_jobs_exchange_devices_where_hosts_are_full():
    pool = Pool(Cluster((*HOSTS, Host("c", ("0",)))), (SCATTERED, LARGE))
    plan, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert plan.targets == {"j": 4, "k": 5}
    assert plan.assignments["j"] == (HostDevices("b", ("0", "1", "2")),)
    assert plan.assignments["k"] == (LARGE.held[0], LARGE.held[2])
    assert "which pays what two resizes of both jobs cost, 20 s" in reasons["j"].text
    assert "gives j devices on b" in reasons["k"].text
    half = applied(pool, plan, is_released=False)
    assert half.plan.assignments == plan.assignments
    after = settled(pool)
    assert after.job("j").held == (HostDevices("b", tuple("0123")),)
    assert after.job("k").held == (HostDevices("a", ("1", "2", "3", "0")), HostDevices("c", ("0",)))


def test_not_where_the_other_would_be_on_more_hosts():
    held = (HostDevices("a", ("0",)), HostDevices("b", ("0", "1")))
    other = Job("k", "", 1, 2, 0.0, held=(HostDevices("b", ("2", "3")),), started=0.0)
    full = Job("l", "", 3, 3, 0.0, held=(HostDevices("a", ("1", "2", "3")),), started=0.0)
    jobs = (replace(SCATTERED, max=3, held=held), other, full)
    pool = Pool(Cluster(HOSTS), jobs)
    assert dict(pool.plan.assignments) == {job.id: job.held for job in jobs}


@given(pools("history", never=["drain"]))
def test_moves_come_to_an_end_and_leave_fewer_hosts(pool):
    before = settled(pool)
    jobs = tuple(replace(job, started=job.started and 0.0, resized=None) for job in before.jobs)
    after = settled(replace(before, jobs=jobs, now=before.now + before.cluster.options.resize_interval))
    if [job.size for job in after.jobs] == [job.size for job in jobs]:
        assert sum(len(job.held) for job in after.jobs) <= sum(len(job.held) for job in jobs)
