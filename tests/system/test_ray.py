"""Jobs on a Ray cluster whose nodes come and go."""

import contextlib
from collections.abc import Iterator

import psutil
import pytest
from ray_nodes import RayNodes, missing, ray_nodes

from harness import PATIENCE, SLOW, TRACED, ElasticJob, Undisturbed

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with ray_nodes(2) as cluster:
        yield cluster


@pytest.mark.full
def test_workers_leave_a_node_that_is_about_to_go_and_nodes_that_join_are_used(
    nodes: RayNodes, job: ElasticJob, undisturbed: Undisturbed
) -> None:
    nodes.add(3)
    job.start(TRACED, job.results, *SLOW, options=("--ray", nodes.address))
    job.until_size(3)
    nodes.drain(3)
    job.until_size(2)
    nodes.add(4)
    job.until_size(3)
    (agent,) = nodes.agents(4)
    frozen = [agent, *agent.children(recursive=True)]
    for process in frozen:
        process.suspend()
    job.until_size(2)
    assert f"nothing has come from {nodes.name(4)} for 3 s" in job.stderr
    nodes.kill(4)
    job.until_more_steps(5)
    assert job.end() == 0, job.stderr
    for process in frozen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
    undisturbed.check(job, repeated=1)
    assert psutil.wait_procs([*frozen, *nodes.agents()], timeout=PATIENCE)[1] == []


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
    assert psutil.wait_procs(agents, timeout=PATIENCE)[1] == []
