"""A bad allocation file disturbs nobody, is reported once, and the next good one is followed."""

import pytest

from harness import TRACED, ElasticJob

HEADER = "# edt allocation v1 generation=50\n"
BAD = {
    "empty": "",
    "half-written": HEADER + "localhost:1",
    "headless": "localhost:1\n",
    "unknown host": HEADER + "no-such-host.invalid:1\n",
    "negative": HEADER + "localhost:-1\n",
    "too many": HEADER + "localhost:5\n",
    "duplicate devices": HEADER + "localhost:2 devices=1,1\n",
    "noise": "\x00\x01\x02",
}


@pytest.mark.full
def test_bad_files_are_reported_once_and_the_next_good_one_is_followed(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(TRACED, job.results, "--epochs", 40, "--delay", 0.2)
    job.until_steps(2)
    for count, text in enumerate(BAD.values(), start=1):
        job.write_allocation(text)
        job.until(lambda count=count: len(job.events("allocation_rejected")) >= count)
    job.allocation.unlink()
    job.until(lambda: len(job.events("allocation_rejected")) > len(BAD))
    steps = job.steps()
    job.until_steps(steps + 20)
    assert len(job.events("allocation_rejected")) == len(BAD) + 1
    assert job.size() == 2
    job.generation = 60
    job.allocate(1)
    job.until_size(1)
    assert job.end() == 0
    assert [world["size"] for world in job.events("world")] == [2, 1]


@pytest.mark.full
def test_workers_keep_their_devices_when_the_list_grows_and_loses_its_tail(job: ElasticJob) -> None:
    job.allocate(2, devices=" devices=5,3")
    job.start(TRACED, job.results, "--epochs", 40, "--delay", 0.3)
    job.until_steps(2)
    job.allocate(3, devices=" devices=5,3,7")
    job.until_size(3)
    job.until_steps(job.steps() + 3)
    job.allocate(1, devices=" devices=5")
    job.until_size(1)
    assert job.end() == 0
    for row in job.trace():
        assert row["device"] == {0: "5", 1: "3", 2: "7"}[row["rank"]]
