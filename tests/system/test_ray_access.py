"""Jobs on a Ray cluster that wants a token."""

import secrets
from collections.abc import Iterator

import pytest
from ray_nodes import RayNodes, missing, ray_nodes

from harness import TRACED, ElasticJob, Undisturbed

pytestmark = [
    pytest.mark.ray,
    pytest.mark.full,
    pytest.mark.skipif(bool(missing()), reason=f"{missing()}"),
]


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
