from pathlib import Path

import pytest
import torch

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import JobDir, Start, TrainingDir
from edt_hvd.wmla.random_states import RandomStates


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    return JobDir.of({"RESULT_DIR": str(tmp_path)})


def test_a_job_that_goes_on_keeps_its_random_states_and_engines(job: JobDir) -> None:
    job.begin(Start(4, RandomStates.now()))
    expected = torch.rand(3).tolist()
    again = job.begin(Start(2, RandomStates.now()))
    assert again.engines == 4
    again.random_states.restore()
    assert torch.rand(3).tolist() == expected


@pytest.mark.parametrize("content", [b"", b"\x80\x05N.", b"\xff"])
def test_a_start_that_cannot_be_read_is_an_error(job: JobDir, content: bytes) -> None:
    job.path.mkdir(parents=True)
    (job.path / "start").write_bytes(content)
    with pytest.raises(WmlaError, match=r"start cannot be read \(.*start it with another result folder"):
        job.begin(Start(1, RandomStates.now()))


def test_a_training_that_begins_again_has_none_of_the_results_from_before(job: JobDir) -> None:
    folder = job.training(2)
    assert (folder.number, TrainingDir(folder.path)) == (2, folder)
    for _ in range(2):
        folder.begin()
        assert list(folder.path.iterdir()) == []
        folder.outcome.touch()
