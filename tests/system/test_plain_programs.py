"""Programs that know nothing of us: they are asked to end."""

import os
import signal
from pathlib import Path

import pytest

from harness import ElasticJob

TIDY = """
import atexit, signal, subprocess, sys, time
atexit.register(lambda: print("exit functions ran", flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit("saved"))
LOOP = "while true; do sleep 0.1; done"
child = subprocess.Popen(["sh", "-c", "trap 'echo child ended too; exit' TERM; echo is up; " + LOOP])
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


def test_a_job_that_never_stops_printing_is_stopped_and_its_one_log_has_a_limit(
    job: ElasticJob, tmp_path: Path
) -> None:
    job.allocate(1)
    script = tmp_path / "noisy.py"
    script.write_text(
        "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit('last words'))\n"
        "while True: print('words ' * 10)\n"
    )
    job.start(script, options=("--no-warm-start", "--single-log", "--max-log-size", "300000"))
    log = job.out / "log" / "launcher.log"
    job.until(lambda: log.exists() and "is reached" in log.read_text())
    assert job.process is not None
    os.kill(job.process.pid, signal.SIGTERM)
    assert job.end() == 143
    text = log.read_text()
    _, left_out, end = text.partition("bytes are left out here\n")
    assert left_out
    assert end.startswith("[0] words")
    assert "[0] last words\n" in end
    assert len(text) < 301_000
    assert sorted(path.name for path in log.parent.iterdir()) == ["edt-launch.log", "launcher.log"]


@pytest.mark.full
def test_what_a_job_uses_is_measured(job: ElasticJob, tmp_path: Path) -> None:
    job.allocate(1)
    script = tmp_path / "busy.py"
    script.write_text("block = bytearray(2**28)\nwhile True: pass\n")
    job.start(script, options=("--no-warm-start",))
    job.until(lambda: bool(job.events("usage")))
    assert job.process is not None
    os.kill(job.process.pid, signal.SIGTERM)
    job.end()
    used = job.events("usage")[0]
    assert used["processors"] > 0
    assert used["memory"] > 2**28
    assert used["gpus"] is None
