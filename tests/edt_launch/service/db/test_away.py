"""A real server of PostgreSQL that ends while the service runs, and comes back."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import postgres_server
from serving import PATIENCE, Service, serving, until


@pytest.fixture
def server() -> Iterator[postgres_server.Server]:
    try:
        with postgres_server.running() as started:
            yield started
    except postgres_server.NoServerError as error:
        pytest.skip(f"no PostgreSQL server: {error}")


def refusal(service: Service, path: str) -> dict[str, Any]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        service.get(path)
    assert caught.value.code == 503
    assert caught.value.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = json.load(caught.value)
    return problem


def next_jobs(stream: Any) -> Any:
    """The next event of the stream of jobs."""
    for line in stream:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream has ended")


@pytest.mark.full
def test_a_restart_of_the_database_ends_nothing(tmp_path: Path, server: postgres_server.Server) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("node1 slots=2\n")
    url = server.url.format("postgres")
    with serving(tmp_path / "home", "--hostfile", str(hosts), "--database", url) as service:
        log = service.home / "output"
        with urllib.request.urlopen(service.request("/api/v1/stream"), timeout=PATIENCE) as stream:
            assert next_jobs(stream)["jobs"] == []
            server.stop()
            until(lambda: "the database cannot be used, it is tried again" in log.read_text())
            assert "does not answer" in refusal(service, "/api/v1/jobs")["detail"]
            assert "does not answer" in refusal(service, "/healthz")["detail"]
            server.start()
            until(lambda: "the database can be used again" in log.read_text())
            assert service.get("/api/v1/jobs")["jobs"] == []
            hosts.write_text("node1 slots=3\n")
            until(lambda: service.get("/api/v1/cluster")["devices"] == 3)
        assert service.end() == 0
