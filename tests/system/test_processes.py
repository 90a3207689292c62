"""The processes of a job: which there are, what others can read of them, and what becomes of them alone."""

import signal
import sys
from pathlib import Path

import psutil
import pytest

from elsewhere import ELSEWHERE, reach
from harness import TRACED, ElasticJob

SECRET = "a value of the job's environment: 5ec2e7"
SHELLS = {"sh", "bash", "dash", "env"}


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
def test_a_local_job_of_two_workers_is_five_processes_that_keep_its_variables_to_themselves(
    job: ElasticJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", SECRET)
    job.allocate(2)
    job.start(TRACED, job.results, "--epochs", 40, "--delay", 0.3)
    job.until_steps(3)
    assert job.process is not None
    launcher = psutil.Process(job.process.pid)
    agent = job.agent()
    (server,) = agent.children()
    workers = {event["pid"] for event in job.events("ready")}
    family = [launcher, *launcher.children(recursive=True)]
    assert {process.pid for process in family} == {launcher.pid, agent.pid, server.pid, *workers}
    assert {process.ppid() for process in family if process.pid in workers} == {server.pid}
    assert len(family) == 5
    assert not SHELLS & {process.name() for process in family}
    # What all users of the machine can read: no value of theirs, ours, or the worker's token.
    values = set(psutil.Process(min(workers)).environ().values()) | {SECRET}
    telling = {value for value in values if len(value) > 20 and value not in sys.path}
    words = [word for process in family for word in process.cmdline()]
    assert not [value for value in telling if any(value in word for word in words if word != value)]
    assert SECRET not in " ".join(words)
    assert job.end() == 0
    assert job.survivors() == []


@pytest.mark.full
def test_an_agent_leaves_signals_to_workers(job: ElasticJob) -> None:
    job.allocate(1)
    job.start(TRACED, job.results, "--epochs", 40, "--delay", 0.3)
    job.until_steps(2)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        job.agent().send_signal(number)
    job.until_steps(job.steps() + 3)
    assert job.end() == 0
    assert not job.events("failed", "restarting")


@pytest.mark.full
def test_workers_behind_a_cut_link_are_lost_until_their_host_is_heard_of_again(
    job: ElasticJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in for ssh becomes the agent; a link between them is what is killed."""
    hosts, _ = reach(tmp_path, monkeypatch, relayed=True)
    job.start(TRACED, job.results, "--epochs", 40, "--delay", 0.3, options=hosts)
    job.until(lambda: job.size() == 3)
    job.until_steps(3)
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
    job.until(lambda: len(job.events("released")) == 2)  # a new agent has swept the host
    assert {event["worker"] for event in job.events("released")} == {
        event["worker"] for event in job.events("lost")
    }
    job.until_size(3)
    agent.resume()
    assert job.end() == 0
    job.until(lambda: not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE, running=False)
