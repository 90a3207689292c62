"""The devices that jobs could use besides those there are."""

import pytest

from edt_launch.allocator.forecast.demand import demand
from edt_launch.allocator.model import Cluster, Host, Job, Owner

HOST = Host("a", ("0", "1", "2", "3"))
ROOT, ANN, BOB = Owner("", None), Owner("ann"), Owner("bob", limit=2)


def job(name: str, least: int, most: int, owner: str = "ann") -> Job:
    return Job(name, owner, least, most, 0.0)


@pytest.mark.parametrize(
    "jobs, more",
    [
        ([], 0),
        ([job("one", 1, 4)], 0),
        ([job("one", 1, 6)], 2),
        ([job("one", 1, 4), job("two", 2, 3)], 3),
        ([job("one", 8, 8)], 4),
        ([job("one", 1, 4), job("two", 1, 8, "bob")], 2),  # whose limit is 2
        ([job("two", 3, 8, "bob")], 0),  # no number of hosts lets it start
    ],
)
def test_what_no_job_can_use_is_not_wanted(jobs: list[Job], more: int) -> None:
    assert demand(0.0, Cluster((HOST,), (ROOT, ANN, BOB)), jobs) == more


def test_hosts_that_cannot_be_used_count_for_nothing() -> None:
    hosts = (HOST, Host("b", ("0",), is_up=False), Host("c", ("0",), is_draining=True))
    assert demand(0.0, Cluster(hosts, (ROOT, ANN)), [job("one", 1, 6)]) == 2
    assert demand(0.0, Cluster((), (ROOT, ANN)), [job("one", 1, 6)]) == 6
