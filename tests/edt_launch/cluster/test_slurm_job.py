"""The Slurm job that a process runs in, with a scontrol of our own."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from edt_launch.cluster import slurm_job
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.slurm import Slurm
from edt_launch.cluster.slurm_job import SlurmJob
from edt_launch.core.errors import SourceError

RUNNING = "JobId=7 JobName=a job JobState=RUNNING Requeue=1 NodeList=n[1-2] PreemptTime=None Comment=a=b"
PREEMPTED = RUNNING.replace("PreemptTime=None", "PreemptTime=2026-11-28T11:36:06")
CANCELLED = PREEMPTED.replace("RUNNING", "CANCELLED")

Scontrol = Callable[[str], Path]


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scontrol:
    """A scontrol that says this of the job; its calls are in the file returned."""

    def make(shown: str) -> Path:
        program, calls = tmp_path / "scontrol", tmp_path / "calls"
        program.write_text(f"#!/bin/sh\necho \"$@\" >> {calls}\n[ $1 = show ] && echo '{shown}' || exit 0\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return calls

    return make


@pytest.mark.parametrize(
    "number, shown, is_requeued",
    [
        (signal.SIGUSR2, RUNNING, True),  # its time is nearly up
        (signal.SIGTERM, PREEMPTED, True),
        (signal.SIGTERM, PREEMPTED.replace("RUNNING", "SIGNALING"), True),
        (signal.SIGTERM, RUNNING, False),  # somebody wants its end
        (signal.SIGTERM, CANCELLED, False),
    ],
)
def test_a_job_that_slurm_ends_is_requeued(
    scontrol: Scontrol, number: int, shown: str, is_requeued: bool
) -> None:
    calls = scontrol(shown)
    said = SlurmJob("7").go_on(number)
    assert ("requeue 7" in calls.read_text().splitlines()) == is_requeued
    assert ("Slurm job 7 is requeued" in said) == is_requeued
    assert "the state is saved" in said


def test_nodes_that_leave_the_job_are_hosts_no_more(scontrol: Scontrol) -> None:
    n1, n2 = HostSlots("n1", 2), HostSlots("n2", 2)
    calls = scontrol(RUNNING)
    source = Slurm((n1, n2), "7")
    assert source.hosts() == (n1, n2)  # as the environment says
    source._asked = float("-inf")
    assert source.hosts() == (n1, n2)
    scontrol(RUNNING.replace("n[1-2]", "n1"))
    assert source.hosts() == (n1, n2)  # Slurm is asked every two seconds
    source._asked = float("-inf")
    assert source.hosts() == (n1,)
    assert calls.read_text() == "show job -o 7\n" * 2
    scontrol(RUNNING.replace("n[1-2]", "(null)"))
    source._asked = float("-inf")
    with pytest.raises(SourceError, match="Slurm job 7 has none of its nodes any more"):
        source.hosts()


def test_a_command_of_slurm_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_job, "TIME_LIMIT", 0.01)
    with pytest.raises(SourceError, match="sleep 600: no answer within"):
        slurm_job.ask("sleep", "600")
