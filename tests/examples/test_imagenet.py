"""examples/imagenet/main.py: under torchrun, and resumed by another number of workers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from light import LIGHT
from tiers import full

SCRIPT = Path(__file__).parents[2] / "examples" / "imagenet" / "main.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def train(folder: Path, workers: int, *options: str) -> str:
    command = [*TORCHRUN, str(workers), str(SCRIPT), *options]
    path = f"{LIGHT}{os.pathsep}{SCRIPT.parents[2]}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("data", [full("--dummy"), pytest.param("--print-freq=50")])
def test_goes_on_where_another_number_of_workers_stopped(tmp_path, data):
    first = train(tmp_path, 2, data, "--epochs", "2", "-b", "16")
    assert "=> trained 2 epochs" in first
    rest = train(tmp_path, 1, data, "--epochs", "6", "-b", "32")
    assert "=> epoch 2 at 0 samples, on 1 workers" in rest
    assert "=> trained 6 epochs" in rest
    best = set() if data == "--dummy" else {"model_best.pth.tar"}  # its accuracy may stay 0
    if best:
        assert float(re.findall(r"best Acc@1 (\d+\.\d+)", rest)[-1]) > 85
    assert {path.name for path in tmp_path.iterdir()} >= {"checkpoint.pth.tar", *best}
