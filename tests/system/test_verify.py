"""`edt verify` on real jobs: scripts that keep their bits, and scripts that do not."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edt_launch.agent.system import processes
from harness import PATIENCE, POLL, PROGRAMS
from started import started
from tiers import full

VERIFIED = PROGRAMS / "verified.py"
VERIFY = (sys.executable, "-m", "edt_launch.cli", "verify")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where runs are kept while they last."""
    path = tmp_path / "temporary files"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    return path


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """What all processes of the test have in their environment; this one itself has got it too late."""
    monkeypatch.setenv("EDT_TEST_MARK", str(tmp_path))
    return {"EDT_TEST_MARK": str(tmp_path)}


def verify(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [*VERIFY, *map(str, words)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def found(*words: object) -> dict:
    """The verdict on a script whose bits differ."""
    result = verify("--json", "--steps", 3, *words)
    assert result.returncode == 1, result.stderr
    return json.loads(result.stdout)


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a script.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "size, runs",
    [(1, ["1 worker", "1 worker again"]), full(2, ["2 workers", "2 workers again", "1 → 2 workers"])],
)
def test_a_script_keeps_its_bits_with_every_number_of_workers_and_when_resized(folder, size, runs):
    result = verify("--np", size, "--schedules", 1, "--steps", 3, VERIFIED, "none")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert [line.split("  ")[1] for line in lines[: len(runs)]] == runs
    assert lines[-1].startswith("The bits agree: ")
    assert lines[-1].endswith(f"in {len(runs)} runs.")
    assert list(folder.glob("edt-verify-*")) == []


@pytest.mark.full
def test_a_script_that_does_not_repeat_itself_is_told_why(folder):
    verdict = found("--np", 1, VERIFIED, "operator")
    assert verdict["runs"] == ["1 worker", "1 worker again"]
    assert (verdict["difference"]["step"], verdict["difference"]["name"]) == (1, "model.0.weight")
    assert verdict["cause"] == "non-deterministic operator"
    assert "flawed::noisy made other outputs of the same inputs" in verdict["why"]


@pytest.mark.full
def test_what_newcomers_lack_is_state_outside_the_state(folder):
    verdict = found("--np", 2, "--schedules", 1, VERIFIED, "outside")
    assert verdict["runs"] == ["2 workers", "2 workers again", "1 → 2 workers"]
    assert (verdict["difference"]["step"], verdict["difference"]["rank"]) == (3, 1)
    assert verdict["cause"] == "state outside TorchState, or dependence on the rank"
    assert "loader (ElasticDataLoader)" in verdict["advice"]


def test_workers_whose_datasets_differ_are_told_so(folder):
    result = verify("--np", 2, "--steps", 3, VERIFIED, "split")
    assert result.returncode == 3
    told = " ".join(result.stderr.split())
    assert re.search(
        r"datasets are not the same: .*dataset\[\d+\] is float32\[3\] of .* on rank 0 and ", told
    )


@pytest.mark.full
@pytest.mark.parametrize(
    "text, words",
    [
        ("raise OSError('no data here')", "OSError: no data here"),
        ("print('trained')", "nothing was recorded: verify needs edt_hvd.TorchState"),
        ("import time; time.sleep(1000)", "1 worker: not done after 5 s; raise --timeout"),
    ],
)
def test_a_script_that_cannot_be_verified_is_told_why(folder, marked, tmp_path, text, words):
    result = verify("--np", 1, "--timeout", 60 if "sleep" not in text else 5, script(tmp_path, text))
    assert result.returncode == 3
    assert words in result.stderr
    assert processes.having(marked) == set()


@pytest.mark.full
@pytest.mark.parametrize("number, exit_code", [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_ending_it_leaves_no_process_behind(folder, marked, tmp_path, number, exit_code):
    waiting = script(tmp_path, "import pathlib, time; pathlib.Path('ready').touch(); time.sleep(1000)")
    with started([*VERIFY, "--np", "2", waiting], cwd=tmp_path, stderr=subprocess.PIPE) as command:
        while not (tmp_path / "ready").exists():
            assert command.poll() is None
            time.sleep(POLL)
        command.send_signal(number)
        command.communicate()
    assert command.returncode == exit_code
    assert processes.wait_until_gone(processes.having(marked), PATIENCE) == set()
    assert exit_code != 130 or list(folder.glob("edt-verify-*")) == []
