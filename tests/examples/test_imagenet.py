"""examples/imagenet/main.py: under torchrun, and resumed by another number of workers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from light import LIGHT

SCRIPT = Path(__file__).parents[2] / "examples" / "imagenet" / "main.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def train(folder: Path, workers: int, *options: str) -> str:
    command = [*TORCHRUN, str(workers), str(SCRIPT), *options]
    path = f"{LIGHT}{os.pathsep}{SCRIPT.parents[2]}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.full
@pytest.mark.parametrize("data", ["--dummy", "--print-freq=50"])
def test_goes_on_where_another_number_of_workers_stopped(tmp_path, data):
    first = train(tmp_path, 2, data, "--epochs", "1", "-b", "16")
    assert "=> trained 1 epochs" in first
    rest = train(tmp_path, 1, data, "--epochs", "2", "-b", "32")
    assert "=> epoch 1 at 0 samples, on 1 workers" in rest
    assert "=> trained 2 epochs" in rest
    accuracies = [float(found) for found in re.findall(r"best Acc@1 (\d+\.\d+)", first + rest)]
    assert data == "--dummy" or 10 < accuracies[0] < accuracies[-1]  # chance is 10 percent
    assert (tmp_path / "checkpoint.pth.tar").exists()
    assert data == "--dummy" or (tmp_path / "model_best.pth.tar").exists()
