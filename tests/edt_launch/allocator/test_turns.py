"""Turns, where not all minimums fit: how long they are, and what they cost."""

from dataclasses import replace
from itertools import groupby

import pytest

from edt_launch.allocator.model import Cluster, Host, Job, Options, Owner, Policy, Usage
from edt_launch.allocator.turns import Turns, protected
from edt_launch.allocator.work import gather
from pools import NOW, Pool, settled, waited

TICK = 60.0
OPTIONS = Options()
TWO = Job("a", "", 1, 1, NOW), Job("b", "", 1, 1, NOW)


def pool(*jobs: Job, devices: int = 1, owners: tuple[Owner, ...] = (Owner("", None),)) -> Pool:
    """Jobs that have been running, as far as they fit, since this moment."""
    host = Host("h", tuple(str(device) for device in range(devices)))
    return settled(Pool(Cluster((host,), owners), jobs))


def runs(start: Pool, seconds: float, tick: float = 300.0) -> list[tuple[str, float]]:
    """Which one of the jobs ran, and for how long, one turn after the other; a decision every `tick`."""
    turns = []
    for _ in range(int(seconds / tick)):
        start = settled(waited(start, tick))
        turns.append(next(job.id for job in start.jobs if job.held))
    return [(name, len(list(of_one)) * tick) for name, of_one in groupby(turns)]


def test_two_jobs_take_turns_that_grow():
    """The first ends when the newcomer may start, two when one is ahead by a turn, then by half as much."""
    turn, first = OPTIONS.turn, 300.0
    lengths = [length for _, length in runs(pool(*TWO), 7200, TICK)]
    had = [first, first + turn, 2 * turn + first]
    expected = [first, had[1], had[2] - first, 1.5 * had[2] - had[1]]
    assert lengths[:4] == [pytest.approx(length, abs=3 * TICK) for length in expected]


def test_what_suspensions_cost_is_a_small_part_of_the_time():
    cost = 60.0
    jobs = [Job(name, "", 1, 1, NOW, start_cost=cost, waiting_since=NOW) for name in "abc"]
    seconds = 100 * cost + 3600
    assert len(runs(pool(*jobs), seconds, TICK + cost / 2)) * cost <= seconds / OPTIONS.protected_costs


def test_turns_grow_with_what_a_start_costs_and_with_what_a_job_has_had():
    jobs = (
        Job("cheap", "", 1, 1, 0.0),
        Job("dear", "", 1, 1, 0.0, start_cost=100.0),
        Job("long", "", 2, 2, 0.0, usage=Usage(attained=9000.0)),
    )
    work = gather(NOW, Cluster((Host("h", tuple("01")),)), jobs)
    turns = Turns(work)
    assert [protected(work, job) for job in jobs] == [300.0, 1000.0, 300.0]
    assert [turns.turn(index) for index in range(3)] == [900.0, 2000.0, 3000.0]
    assert [turns.longest_wait(index) for index in range(3)] == [1200.0, 1200.0, 6000.0]


def test_a_newcomer_starts_soon_however_long_the_turns_of_others_have_become():
    start = waited(pool(Job("a", "", 1, 1, 0.0)), 100_000)
    newcomer = Job("b", "", 1, 1, start.now, waiting_since=start.now)
    both = settled(replace(start, jobs=(*start.jobs, newcomer)))
    assert settled(waited(both, 1.0)).job("b").size == 1


@pytest.mark.parametrize("gap,had", [(250.0, 0.0), (300.0, 36000.0)])
def test_a_stream_of_newcomers_starves_nobody(gap, had):
    """Each of them needs 300 seconds. The long one has as much of the time as each that waits."""
    now, most, hours = pool(Job("long", "", 1, 1, NOW, usage=Usage(had, had, NOW, had))), 0, 12
    for number in range(int(hours * 3600 / gap)):
        newcomer = Job(f"n{number:03}", "", 1, 1, now.now, waiting_since=now.now)
        now = replace(now, jobs=(*now.jobs, newcomer))
        for _ in range(2):
            now = waited(settled(now), gap / 2)
            left = tuple(job for job in now.jobs if job.id == "long" or job.usage.service < 300.0)
            now, most = replace(now, jobs=left), max(most, len(left))
    assert now.job("long").usage.service - had >= hours * 3600 / most


@pytest.mark.parametrize("policy", [Policy.FIFO, Policy.PRIORITY], ids=str)
def test_an_order_of_its_own_gives_an_owner_no_more_turns(policy):
    owners = (Owner("", None), Owner("ann", policy=policy), Owner("bob"))
    jobs = (
        Job("a", "ann", 1, 1, NOW, weight=2.0),
        Job("b", "ann", 1, 1, NOW + 1),
        *(Job(name, "bob", 1, 1, NOW) for name in "cd"),
    )
    turns = runs(pool(*jobs, owners=owners), 24 * 3600)
    of_ann = sum(length for name, length in turns if name in "ab")
    assert of_ann == pytest.approx(12 * 3600, rel=0.3)
    assert sum(length for name, length in turns if name == "a") > 0.8 * of_ann


def test_the_next_in_the_order_of_its_owner_gets_a_reservation_that_takes_nothing_from_those_before_it():
    owners = (Owner("", None), Owner("ann", policy=Policy.FIFO), Owner("bob"))
    first, next_ = Job("a", "ann", 1, 1, NOW), Job("b", "ann", 3, 3, NOW + 1, waiting_since=NOW)
    never = Job("never", "ann", 5, 5, NOW, waiting_since=NOW)
    small = tuple(Job(f"b{number}", "bob", 1, 1, NOW + 2) for number in range(3))
    start = pool(first, *small, devices=4, owners=owners)
    late = settled(waited(replace(start, jobs=(*start.jobs, never, next_)), 3 * OPTIONS.longest_wait))
    assert {job.id for job in late.jobs if job.held} == {"a", "b"}


def test_the_plan_names_when_the_next_of_a_queue_will_have_waited_since_one_before_it_started():
    owners = (Owner("", None), Owner("ann", policy=Policy.FIFO), Owner("bob"))
    had = Usage(attained=20_000.0)
    others = (Job(f"b{number}", "bob", 1, 1, 0.0, usage=had) for number in range(3))
    running = pool(Job("a", "ann", 1, 1, 0.0), *others, devices=4, owners=owners)
    last = Job("b", "ann", 3, 3, 1.0, usage=Usage(attained=1500.0), waiting_since=1.0)
    now = settled(replace(running, jobs=(*running.jobs, last)))
    wait = Turns(gather(NOW, now.cluster, now.jobs)).longest_wait(now.jobs.index(now.job("b")))
    while now.plan.targets["b"] == 0:
        again_at = now.plan.again_at
        assert again_at is not None
        now = settled(waited(now, again_at - now.now))
    assert now.now == NOW + wait
    assert now.plan.targets == {"a": 1, "b": 3, "b0": 0, "b1": 0, "b2": 0}


NEVER = Job("never", "bob", 10**6, 10**6, 0.0, waiting_since=0.0)  # more than any pool here has


@pytest.mark.parametrize("policy", list(Policy), ids=str)
def test_jobs_that_can_never_run_give_their_owner_no_turns(policy):
    owners = (Owner("", None), Owner("ann", policy=policy), Owner("bob"))
    jobs = Job("a", "ann", 1, 1, NOW), Job("b", "bob", 1, 1, NOW)
    junk = tuple(replace(NEVER, id=f"n{number}", owner="ann", weight=1e-9) for number in range(9))
    alone, beside = (runs(pool(*some, owners=owners), 12 * 3600) for some in (jobs, (*jobs, *junk)))
    assert beside == alone


def test_how_long_is_too_long_follows_from_the_fullest_owner_above():
    owners = (Owner("", None), Owner("ann", limit=1.0))
    cluster = Cluster((Host("h", tuple("0123")),), owners)
    small = tuple(Job(f"a{number}", "ann", 1, 1, float(number)) for number in range(3))
    turns = Turns(gather(NOW, cluster, (*small, Job("b", "", 4, 4, 0.0))))
    assert [turns.longest_wait(index) for index in (0, 3)] == [1200.0, 600.0]
