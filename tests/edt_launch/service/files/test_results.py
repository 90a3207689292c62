from pathlib import Path

import pytest

from edt_launch.service.app.home import JobDir
from edt_launch.service.files.results import listed, members, note_submitted


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    """A job that was submitted with three files, one of them a link."""
    folder = JobDir(tmp_path / "job")
    for path in folder.folders:
        path.mkdir(parents=True)
    (folder.code / "data").mkdir()
    (folder.code / "train.py").write_text("print()")
    (folder.code / "data" / "weights.pt").write_text("old")
    (folder.code / "link").symlink_to("train.py")
    note_submitted(folder)
    return folder


def names(job: JobDir) -> list[str]:
    return [one.name for one in listed(members(job))]


def test_what_is_new_or_has_changed_is_a_result(job: JobDir) -> None:
    (job.code / "out").mkdir()
    (job.code / "out" / "best.pt").write_text("best")
    (job.code / "data" / "weights.pt").write_text("new")
    (job.code / "train.py").touch()
    assert names(job) == ["work/train.py", "work/data/weights.pt", "work/out/best.pt"]


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000], ids=["empty", "cut", "a list", "deep"])
def test_without_the_list_of_what_was_submitted_all_counts(job: JobDir, text: str) -> None:
    job.submitted.write_text(text)
    assert names(job) == ["work/train.py", "work/data/weights.pt"]
