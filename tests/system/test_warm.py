"""Workers are forked from a process that has imported what they need; without it, jobs run as well."""

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from harness import TRACED, ElasticJob


@pytest.fixture
def training(job: ElasticJob) -> ElasticJob:
    job.allocate(2)
    return job


def grow(job: ElasticJob) -> None:
    job.until_steps(3)
    job.allocate(4)
    job.until_size(4)


def newcomers(job: ElasticJob) -> Iterator[dict[str, Any]]:
    """The first `ready` events of the third and fourth worker."""
    for worker in (2, 3):
        yield next(event for event in job.events("ready") if event["worker"] == worker)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
def test_newcomers_are_forked(training: ElasticJob) -> None:
    training.start(TRACED, training.results, "--epochs", 40, "--delay", 0.3)
    grow(training)
    (server,) = training.events("warm_server")
    assert server["refused"] is None
    assert {"torch", "horovod", "edt_hvd"} <= set(server["imports"])
    parents = {psutil.Process(event["pid"]).ppid() for event in newcomers(training)}
    assert parents == {server["pid"]}
    training.until(lambda: len(training.events("standby")) == 4)
    for event in training.events("standby"):
        assert event["private"] < server["private"]
    assert training.end() == 0
    assert training.survivors() == []
    assert "standby: 2 newcomers" in training.stderr
    assert "left behind" not in training.stderr


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
def test_the_server_may_be_killed(training: ElasticJob) -> None:
    training.start(TRACED, training.results, "--epochs", 40, "--delay", 0.3)
    training.until_steps(1)
    (server,) = training.events("warm_server")
    os.kill(server["pid"], signal.SIGKILL)
    grow(training)
    assert training.end() == 0
    assert len(training.events("warm_server")) == 2
    assert not training.events("failed")
    assert training.survivors() == []


@pytest.mark.full
def test_without_a_server(training: ElasticJob) -> None:
    training.start(TRACED, training.results, "--epochs", 40, "--delay", 0.3, options=("--no-warm-start",))
    grow(training)
    assert training.end() == 0
    assert training.events("warm_server") == []
    assert training.survivors() == []
