"""Jobs on a Ray cluster whose nodes come and go."""

from collections.abc import Iterator

import psutil
import pytest

from harness import SLOW, TRACED, ElasticJob, Undisturbed
from ray_nodes import RayNodes, missing, ray_nodes

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with ray_nodes(2) as cluster:
        yield cluster


def test_a_node_whose_power_fails_costs_its_worker_and_nothing_else(
    nodes: RayNodes, job: ElasticJob, undisturbed: Undisturbed
) -> None:
    job.start(TRACED, job.results, *SLOW, options=("--ray", nodes.address))
    job.until_size(2)
    job.until_more_steps(5)
    agents = nodes.agents()
    assert len(agents) == 2
    nodes.kill(2)
    job.until_size(1)
    job.until_more_steps(5)
    assert job.end() == 0, job.stderr
    undisturbed.check(job, repeated=1)
    assert job.survivors() == []
    assert psutil.wait_procs(agents, timeout=60)[1] == []
