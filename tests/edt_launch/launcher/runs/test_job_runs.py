"""How the runs of a job are numbered."""

from pathlib import Path

import pytest

from edt_launch.launcher.runs.job_runs import JobRuns
from edt_messages.runs import JobRun


def test_the_numbers_of_a_job_rise_whichever_launcher_begins_the_run(tmp_path: Path) -> None:
    complaints: list[str] = []
    path = tmp_path / "job_run"
    first = JobRuns(path, complaints.append)
    runs = [first.begin(), first.begin(), JobRuns(path, complaints.append).begin()]
    assert [run.number for run in runs] == [1, 2, 3]
    assert len({run.job for run in runs}) == 1
    assert JobRun.of(first.variables(runs[-1])) == JobRun.read(path.read_text()) == runs[-1]
    assert complaints == []
    first._path.unlink()
    first._path.mkdir()
    assert (first.begin().number, len(complaints)) == (3, 1)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"job": "a"}', '{"job": "a", "run": "2"}', "[" * 9999])
def test_a_file_that_makes_no_sense_names_no_run(text: str) -> None:
    assert JobRun.read(text) is None
