from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Binding, Cluster, Host, Job, Owner, Policy, Preemption, Usage
from edt_launch.allocator.reasons import explain
from pools import Pool, build, pools, settled

HOSTS = (Host("h", ("0", "1", "2", "3")),)
OWNERS = (
    Owner("", None),
    Owner("ann"),
    Owner("bob", limit=1),
    Owner("eve", limit=3),
    Owner("dan", guarantee=2.0),
    Owner("fay"),
    Owner("gus", "fay"),
    Owner("pam", usage=Usage(attained=7200.0), budget=7200.0),
    Owner("pat", "pam"),
)


def job(low: int, high: int, owner: str = "ann", **fields: Any) -> Job:
    return Job("j", owner, low, high, 1.0, **fields)


def other(low: int, high: int, owner: str = "", tier: int = 0) -> Job:
    return Job("k", owner, low, high, 0.0, tier=tier)


SLOWER, NO_FASTER = ((2, 2.0), (4, 1.0)), ((2, 2.0), (4, 2.0))
TURN = "waits its turn: it needs {} at once, and the jobs before it leave {}"


@pytest.mark.parametrize(
    "jobs,binding,text",
    [
        ([job(1, 2)], Binding.MAX, "has 2 of 2 (its maximum)"),
        ([job(1, 4, speedup=NO_FASTER)], Binding.SPEED, "has 2: 4 devices are no faster than 2"),
        ([job(1, 4, speedup=SLOWER, step_time=2.0)], Binding.SPEED, "measured 2 s against 1 s a step"),
        ([job(3, 4, speedup=SLOWER)], Binding.SPEED, "has its minimum of 3: 4 devices are slower than 2"),
        ([job(1, 4, speedup=((1, 2.0), (4, 1.0)))], Binding.SPEED, "has 2 to find out whether that is"),
        ([job(1, 4, "bob")], Binding.LIMIT, "has 1: bob has its limit of 1"),
        ([job(9, 9)], Binding.ADMISSION, "waits: it needs 9, and the pool has 4"),
        ([job(2, 2, "bob")], Binding.LIMIT, "waits: it needs 2, and the limit of bob is 1"),
        ([job(1, 4), other(1, 4)], Binding.SHARE, "has 2: the fair share of ann is 2, and this is the only"),
        ([job(1, 4, "fay"), other(1, 4, "gus")], Binding.SHARE, "share of fay is 4, divided among 2 jobs"),
        ([job(1, 4), other(1, 4, tier=1)], None, "waits"),
        ([job(1, 4, allowed=(3,)), other(2, 2)], None, "waits its turn"),
        ([job(1, 1, "bob"), other(1, 1, "bob")], Binding.LIMIT, TURN.format(1, "0 of bob's limit of 1")),
        ([job(3, 3), other(2, 2)], None, TURN.format(3, "2 of 4 devices")),
        ([job(2, 3, "eve"), other(1, 3, "eve", 1)], Binding.TIER, "3 of eve's limit of 3 are for jobs of a"),
        ([job(3, 3), other(1, 4, "dan")], None, "what is free is guaranteed to owners that use it"),
        ([job(1, 1, "pat")], Binding.LIMIT, "waits: pam has used its budget of 2 GPU hours"),
        ([job(3, 2)], Binding.MIN, "cannot run: no number from 3 to 2"),
    ],
)
def test_says_what_binds(jobs, binding, text):
    pool = settled(Pool(Cluster(HOSTS, OWNERS), tuple(jobs)))
    _, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert binding in (None, reasons["j"].binding)
    assert text in reasons["j"].text


def test_what_owners_do_not_lend_is_named():
    owners = (*OWNERS, Owner("cat", guarantee=3.0, lends=False))
    pool = settled(Pool(Cluster(HOSTS, owners), (Job("j", "ann", 2, 2, 0.0),)))
    _, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert reasons["j"].text == "waits: it needs 2, and 3 of 4 devices are not lent by their owners"
    below = Owner("", None), Owner("lab", limit=3), Owner("cat", "lab", guarantee=2.0, lends=False)
    pool = settled(Pool(Cluster(HOSTS, below), (Job("j", "lab", 1, 2, 0.0),)))
    _, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert reasons["j"].text == "has 1: 2 of lab's limit of 3 are not lent by their owners"


@pytest.mark.parametrize(
    "other,limit,turn",
    [
        ("ann", 9, ", or one of another owner has had its turn;"),
        ("ann", 3, ";"),
        ("", 9, ", or one has had its turn;"),
    ],
)
def test_who_waits_in_a_queue_is_not_told_that_those_before_it_have_turns(other, limit, turn):
    owners = Owner("", None), Owner("ann", limit=limit, policy=Policy.FIFO)
    jobs = Job("j", "ann", 3, 3, 1.0), Job("k", other, 3, 3, 0.0)
    pool = settled(Pool(Cluster(HOSTS, owners), jobs))
    _, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert reasons["j"].change.startswith(f"It starts when a job ends{turn}")


def test_a_job_that_waits_for_one_that_cannot_save_is_told():
    kept = Job("k", "", 4, 4, 0.0, preemption=Preemption.NONE)
    pool = settled(Pool(Cluster(HOSTS), (kept,)))
    pool = replace(pool, jobs=(*pool.jobs, Job("j", "", 1, 1, pool.now)), now=pool.now + 1e6)
    plan, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert plan.targets == {"k": 4, "j": 0}
    assert reasons["k"].binding is Binding.KEPT
    assert reasons["k"].text == "keeps the 4 that it has: it cannot save its work, which would be lost"
    assert reasons["j"].text.endswith("; k keeps its devices to the end")


@pytest.mark.parametrize("gone", ["g", "h"])
def test_a_job_that_cannot_save_is_not_said_to_shrink_where_a_host_was_taken_away(gone):
    hosts = *HOSTS, Host("g", ("0", "1"))
    pool = settled(Pool(Cluster(hosts), (Job("k", "", 6, 6, 0.0, preemption=Preemption.NONE),)))
    left = tuple(replace(host, is_up=host.name != gone) for host in hosts)
    _, reasons = decide(pool.now, Cluster(left), pool.jobs)
    assert reasons["k"].text.startswith("keeps its 6 workers")


NOTHING = {Binding.ADMISSION, Binding.TIER, Binding.LIMIT, Binding.MIN}
"""What may keep a job from having any worker."""


@example(build(623, 3, 3, 1, {"dips", "weights"}))  # devices are being kept for another job
@given(pools("history"))
def test_every_job_has_a_reason_of_one_sentence(pool):
    plan, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert set(reasons) == {job.id for job in pool.jobs}
    assert len(reasons) == len(pool.jobs)
    for job in pool.jobs:
        reason = reasons[job.id]
        assert reason.target == plan.targets[job.id]
        assert reason.text
        assert "\n" not in "".join(explain(job, reason))
        assert reason.path[0][0] == ""
        assert reason.target or reason.binding in NOTHING
