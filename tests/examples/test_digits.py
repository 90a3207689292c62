"""examples/digits.py: the same script alone, under mpirun, horovodrun and edt-launch."""

import re
import sys

import pytest

from tiers import full

LAUNCHERS = {
    "mpirun": ("mpirun", "--oversubscribe", "-np", "3"),
    "horovodrun": ("horovodrun", "-np", "2"),
    "edt-launch": (sys.executable, "-m", "edt_launch.launcher.command", "--min-np", "2", "--max-np", "2"),
}


def final_accuracy(output: str) -> float:
    """The number in the last line that is "accuracy 0.97", with whatever prefix a launcher gives it."""
    return float(re.findall(r"(?m)^(?:\[\S+\]\S*)?\s*accuracy (\d\.\d+)\s*$", output)[-1])


def test_learns_the_digits(run_example):
    result = run_example("digits.py")
    assert result.returncode == 0, result.stderr
    assert final_accuracy(result.stdout) > 0.95


SHORT = ("digits.py", "--epochs", "2", "--lr", "0.05")
_alone = []


@pytest.fixture
def accuracy_alone(run_example):
    """The accuracy of one process, trained once for all launchers."""
    if not _alone:
        result = run_example(*SHORT)
        assert result.returncode == 0, result.stderr
        _alone.append(final_accuracy(result.stdout))
    return _alone[0]


@pytest.mark.parametrize("launcher", ["mpirun", full("horovodrun"), "edt-launch"])
def test_runs_unchanged_and_learns_the_same(run_example, accuracy_alone, launcher):
    result = run_example(*SHORT, prefix=LAUNCHERS[launcher])
    assert result.returncode == 0, result.stdout + result.stderr
    assert final_accuracy(result.stdout) == pytest.approx(accuracy_alone, abs=0.02)
