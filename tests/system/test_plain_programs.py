"""Programs that know nothing of us: they are asked to end."""

import os
import signal
from pathlib import Path

from harness import ElasticJob

TIDY = """
import atexit, signal, subprocess, sys, time
atexit.register(lambda: print("exit functions ran", flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit("saved"))
LOOP = "while true; do sleep 0.1; done"
child = subprocess.Popen(["sh", "-c", "trap 'echo child ended too; exit' TERM; " + LOOP])
print("is up", flush=True)
time.sleep(600)
"""


def test_a_job_that_is_told_to_end_may_end_as_its_program_wants(job: ElasticJob, tmp_path: Path) -> None:
    script = tmp_path / "tidy.py"
    script.write_text(TIDY)
    job.allocate(1)
    job.start(script, options=("--no-warm-start",))
    job.until(lambda: "is up" in job.stdout)
    assert job.process is not None
    os.kill(job.process.pid, signal.SIGTERM)
    assert job.end() == 143
    told = job.stdout + job.stderr
    assert all(text in told for text in ("saved", "exit functions ran", "child ended too"))
    assert [event["signal"] for event in job.events("ending")] == ["SIGTERM"]
