from dataclasses import replace
from pathlib import Path

import pytest
import torch

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import JobDir, Start, TrainingDir
from edt_hvd.wmla.random_states import RandomStates


def start(engines: int = 4) -> Start:
    return Start("/a model/main.py", ("--name", "it's"), "/a model", engines, RandomStates.now())


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    return JobDir.of({"RESULT_DIR": str(tmp_path)})


def test_a_job_that_goes_on_keeps_its_random_states_and_engines(job: JobDir) -> None:
    first = job.begin(start(4))
    expected = torch.rand(3).tolist()
    again = job.begin(replace(start(2), arguments=("--epochs", "9")))
    assert (again.engines, again.arguments) == (first.engines, ("--epochs", "9"))
    assert job.read().arguments == ("--epochs", "9")
    again.random_states.restore()
    assert torch.rand(3).tolist() == expected


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"random_states": {"python": 3}}', "\xff"])
def test_a_start_that_cannot_be_read_is_an_error(job: JobDir, content: str | None) -> None:
    job.path.mkdir(parents=True)
    if content is not None:
        (job.path / "start.json").write_text(content, encoding="latin-1")
    with pytest.raises(WmlaError, match=r"start.json cannot be read \(.*start it with another result folder"):
        job.read()


def test_a_training_that_begins_again_has_none_of_the_results_from_before(job: JobDir) -> None:
    folder = job.training(2)
    assert (folder.number, TrainingDir(folder.path).job) == (2, job)
    for _ in range(2):
        folder.begin({"the optimizer": "SGD"})
        assert [path.name for path in folder.path.iterdir()] == ["train.json"]
        assert folder.call() == {"the optimizer": "SGD"}
        folder.outcome.touch()
