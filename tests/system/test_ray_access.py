"""Jobs on a Ray cluster that wants a token, and on one of another Ray."""

import secrets
import sys
from collections.abc import Iterator

import pytest
from ray_nodes import RayNodes, missing, ray_nodes

from harness import TRACED, ElasticJob, Undisturbed, run

pytestmark = [
    pytest.mark.ray,
    pytest.mark.full,
    pytest.mark.skipif(bool(missing()), reason=f"{missing()}"),
]

OTHER_VERSION = """
import json, sys
from ray._common.usage import usage_constants, usage_lib
from ray._private import ray_constants
from ray._raylet import GcsClient
client = GcsClient(address=sys.argv[1])
found = json.dumps({**usage_lib.get_cluster_metadata(client), "ray_version": "2.99.0"}).encode()
key, namespace = usage_constants.CLUSTER_METADATA_KEY, ray_constants.KV_NAMESPACE_CLUSTER
client.internal_kv_put(key, found, overwrite=True, namespace=namespace)
"""


@pytest.fixture(scope="module", autouse=True)
def _token(_environment: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield


@pytest.fixture(scope="module")
def nodes(_token: None) -> Iterator[RayNodes]:
    with ray_nodes(1, cpus=2) as cluster:
        yield cluster


def test_a_job_needs_the_clusters_token(
    nodes: RayNodes, job: ElasticJob, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--ray", nodes.address)
    job.start(TRACED, job.results, "--epochs", 1, options=options)
    assert job.wait() == 0, job.stderr
    undisturbed.check(job)
    assert job.survivors() == []
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    job.start(TRACED, job.results, "--epochs", 1, options=(*options, "--start-timeout", "60"))
    assert job.wait() != 0
    assert "the cluster wants a token: set RAY_AUTH_MODE=token" in job.stderr


def test_a_cluster_of_another_ray_is_named_in_a_sentence(nodes: RayNodes, job: ElasticJob) -> None:
    run(sys.executable, "-c", OTHER_VERSION, nodes.address)
    options = ("--ray", nodes.address, "--start-timeout", "60")
    job.start(TRACED, job.results, "--epochs", 1, options=options)
    assert job.wait() != 0
    assert "the cluster has Ray 2.99.0 with Python" in job.stderr
    assert "use the same on all nodes" in job.stderr
