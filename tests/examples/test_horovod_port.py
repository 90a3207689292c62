"""examples/horovod_port.py: what it takes to bring a script from Horovod to EDT, and that it runs."""

import difflib
import re
import sys
from pathlib import Path

import pytest

from tiers import full

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_three_lines_differ():
    before, after = (
        (EXAMPLES / name).read_text().splitlines() for name in ("horovod_port_before.py", "horovod_port.py")
    )
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    assert sorted(changed) == ["+ @edt_hvd.elastic", "+ import edt_hvd", "- @hvd.elastic.run"]


HOROVODRUN = ("horovodrun", "--gloo", "-np", "2")
EDT_LAUNCH = (sys.executable, "-m", "edt_launch.launcher.command", "--min-np", "2", "--max-np", "2")


@pytest.mark.parametrize(
    "script, prefix",
    [
        full("horovod_port_before.py", HOROVODRUN, id="before, horovodrun"),
        full("horovod_port.py", HOROVODRUN, id="after, horovodrun"),
        full("horovod_port.py", EDT_LAUNCH, id="after, edt-launch"),
    ],
)
def test_trains(run_example, script, prefix):
    result = run_example(script, "--epochs", "3", prefix=prefix)
    assert result.returncode == 0, result.stdout + result.stderr
    accuracies = [float(accuracy) for accuracy in re.findall(r"training accuracy (\d\.\d+)", result.stdout)]
    assert len(accuracies) == 3
    assert accuracies[-1] > 0.9
    is_warned_of = "no checkpoints are written of a horovod.torch.elastic.state.TorchState" in result.stderr
    assert is_warned_of == (prefix is EDT_LAUNCH)
