"""What becomes of a job when one of its other processes, or a link to another host, is lost."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from elsewhere import ELSEWHERE, reach
from harness import SLOW, TRACED, ElasticJob

pytestmark = pytest.mark.full


@pytest.mark.parametrize("options", [(), ("--no-warm-start",)])
def test_the_warm_server_may_be_missing_or_killed(job: ElasticJob, options: tuple[str, ...]) -> None:
    job.allocate(2)
    job.start(TRACED, job.results, *SLOW, options=options)
    job.until_steps(1)
    for server in job.events("warm_server"):
        os.kill(server["pid"], signal.SIGKILL)
    job.allocate(4)
    job.until_size(4)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the agent leaves them to workers
        job.agent().send_signal(number)
    job.until_more_steps(2)
    assert job.end() == 0
    assert len(job.events("warm_server")) == (0 if options else 2)
    assert not job.events("failed", "restarting")
    assert job.survivors() == []


def test_workers_behind_a_cut_link_are_lost_until_their_host_is_heard_of_again(
    job: ElasticJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in for ssh becomes the agent; a link between them is what is killed."""
    hosts, _ = reach(tmp_path, monkeypatch, relayed=True)
    job.start(TRACED, job.results, *SLOW, options=hosts)
    job.until_size(3)
    job.until_steps(2)
    job.remember()
    assert job.process is not None
    (link,) = [
        child
        for child in psutil.Process(job.process.pid).children()
        if any("relay" in word for word in child.cmdline())
    ]
    agent = next(child for child in link.children() if "edt_launch.agent" in child.cmdline())
    agent.suspend()  # a host that hears nothing
    link.kill()
    job.until(lambda: len(job.events("lost")) == 2)
    assert {event["host"] for event in job.events("lost")} == {ELSEWHERE}
    assert not job.events("released")
    job.until(lambda: len(job.events("released")) == 2)  # the new agent has swept the host and the old one
    assert {event["worker"] for event in job.events("released")} == {
        event["worker"] for event in job.events("lost")
    }
    job.until_size(3)
    assert job.end() == 0
    job.until(lambda: not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE, running=False)
