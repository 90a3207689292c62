"""The frameworks without an engine: PyTorch in one process, and a gang of processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from wmla_harness import WmlaJob, job_in
from wmla_programs import DIGITS, MODELS


@pytest.fixture
def job(tmp_path: Path) -> Iterator[WmlaJob]:
    one = job_in(tmp_path, DIGITS)
    yield one
    one.kill()


def test_an_ordinary_program_runs_in_one_process(job: WmlaJob) -> None:
    job.run(
        MODELS / "single_node" / "main.py",
        "--epochs",
        "2",
        options=("--framework", "PyTorch"),
        environment={},
    )
    assert job.end() == 0, job.stderr
    assert job.stdout.count("epoch 1 of 2") == 1
    assert set(torch.load(job.results / "model" / "model.pth", weights_only=True)) == {"weight", "bias"}


@pytest.mark.full
def test_a_gang_finds_itself(job: WmlaJob) -> None:
    job.gang(3, "--epochs", "2")
    assert job.end() == 0, job.stderr
    for rank in range(3):
        assert job.stdout.count(f"process {rank} of 3 local {rank}") == 1
    assert set(torch.load(job.results / "model" / "model.pth", weights_only=True)) == {"weight", "bias"}
    assert job.survivors() == []


@pytest.mark.full
def test_a_program_ends_though_it_leaves_a_process_behind(job: WmlaJob, tmp_path: Path) -> None:
    script = tmp_path / "leaving" / "main.py"
    script.parent.mkdir()
    script.write_text("import subprocess\nsubprocess.Popen(['sleep', '983'], start_new_session=True)\n")
    job.run(script, options=("--framework", "PyTorch"), environment={})
    assert job.end() == 0, job.stderr
    assert job.survivors() == []
