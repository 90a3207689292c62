from pathlib import Path

import pytest

from edt_hvd.wmla.job_dir import JobDir, TrainingDir


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    return JobDir.of({"RESULT_DIR": str(tmp_path)})


def test_a_job_that_goes_on_keeps_its_engines(job: JobDir) -> None:
    assert [job.engines(4), job.engines(2)] == [4, 4]


def test_a_training_that_begins_again_has_none_of_the_results_from_before(job: JobDir) -> None:
    folder = job.training(2)
    assert (folder.number, TrainingDir(folder.path)) == (2, folder)
    for _ in range(2):
        folder.begin()
        assert list(folder.path.iterdir()) == []
        folder.outcome.touch()
