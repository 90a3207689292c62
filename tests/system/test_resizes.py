"""Changes at any time, several within a second: the last one is reached, and nothing is lost on the way."""

import random
import time

import pytest

from harness import TRACED, ElasticJob, Undisturbed


@pytest.mark.full
def test_a_storm_of_changes_is_coalesced(job: ElasticJob, undisturbed: Undisturbed) -> None:
    """While workers boot, and in the middle of resizes."""
    generator = random.Random(7)
    job.allocate(2)
    job.start(TRACED, job.results, "--delay", 0.1, "--loader-workers", 1)
    job.until(lambda: job.events("started"))
    changes = 0
    while changes < 40 or job.steps() <= 20:
        job.allocate(generator.choice([1, 2, 3, 4]))
        changes += 1
        time.sleep(generator.choice([0.0, 0.05, 0.3, 0.6]))
    last = 1 + generator.randrange(3)
    job.allocate(last)
    job.until_size(last)
    assert len(job.events("world")) < changes
    assert job.end() == 0, job.stderr
    assert job.events("world")[-1]["size"] == last
    assert not job.events("failed")
    undisturbed.check(job)
    assert job.survivors() == []
