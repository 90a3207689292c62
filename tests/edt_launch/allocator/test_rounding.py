"""Whole numbers from real shares."""

from dataclasses import replace

import pytest

from edt_launch.allocator.model import Cluster, Host, Job
from pools import NOW, Pool, settled

CLUSTER = Cluster((Host("h", tuple("0123")),))
JOBS = tuple(Job(name, "", 1, 4, 0.0) for name in "abc")


def test_of_equal_jobs_the_first_one_has_what_does_not_divide():
    assert Pool(CLUSTER, JOBS).plan.targets == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("first", "abc")
def test_who_has_what_does_not_divide_keeps_it(first):
    alone = settled(Pool(CLUSTER, tuple(job for job in JOBS if job.id == first)))
    held = alone.job(first).held
    jobs = tuple(replace(job, held=held, started=0.0) if job.id == first else job for job in JOBS)
    assert settled(Pool(CLUSTER, jobs, NOW + 1e6)).job(first).size == 2
