"""Hosts from a script that was written for Horovod."""

from edt_launch.core.files.atomic import write_atomically
from harness import FAKE_WORKER, ElasticJob


def test_a_job_follows_a_script_and_nothing_that_it_prints_wrongly(job: ElasticJob) -> None:
    shown = job.folder / "shown"
    script = job.folder / "discover.sh"
    script.write_text(f"#!/bin/sh\ncat '{str(shown).replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'\n")
    script.chmod(0o755)
    write_atomically(shown, "")
    options = ("--host-discovery-script", str(script), "--slots-per-host", "1", "--no-warm-start")
    job.start(FAKE_WORKER, "shrunk", options=options)
    job.until(lambda: job.events("allocation_rejected"))  # no pod is there yet
    write_atomically(shown, "localhost\njob-worker-1.job.default.svc.invalid\n")
    job.until_size(1)
    write_atomically(shown, "Traceback (most recent call last):\n")
    job.until(lambda: len(job.events("allocation_rejected")) == 2)
    assert job.size() == 1
    write_atomically(shown, "localhost:2\n")
    assert job.wait() == 0, job.stderr
    _, rejected = job.events("allocation_rejected")
    assert "'Traceback (most recent call last):'" in rejected["reason"]
    assert [event["size"] for event in job.events("world")] == [1, 2]
    assert job.survivors() == []
