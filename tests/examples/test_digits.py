"""examples/digits.py: the same script alone, under mpirun, horovodrun and edt-launch."""

import re
import sys

import pytest

from tiers import full

LAUNCHERS = {
    "python": (),
    "mpirun": ("mpirun", "--oversubscribe", "-np", "3"),
    "horovodrun": ("horovodrun", "-np", "2"),
    "edt-launch": (sys.executable, "-m", "edt_launch.launcher.command", "--min-np", "2", "--max-np", "2"),
}


def final_accuracy(output: str) -> float:
    """The number in the last line that is "accuracy 0.97", with whatever prefix a launcher gives it."""
    return float(re.findall(r"(?m)^(?:\[\S+\]\S*)?\s*accuracy (\d\.\d+)\s*$", output)[-1])


@pytest.mark.parametrize("launcher", [full("python"), full("mpirun"), full("horovodrun"), "edt-launch"])
def test_runs_unchanged_and_learns_the_digits(run_example, launcher):
    result = run_example("digits.py", "--epochs", "3", prefix=LAUNCHERS[launcher])
    assert result.returncode == 0, result.stdout + result.stderr
    assert final_accuracy(result.stdout) == pytest.approx(0.86, abs=0.03)
