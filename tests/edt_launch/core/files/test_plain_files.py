import os
from pathlib import Path
from typing import Literal

import pytest

from edt_launch.core.files import plain_files
from edt_launch.core.files.plain_files import NoFileError, open_file, read
from no_files import KINDS, put

MODES: tuple[Literal["rb", "ab"], ...] = ("rb", "ab")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_no_file_is_refused_at_once(tmp_path: Path, kind: str, mode: Literal["rb", "ab"]) -> None:
    path = tmp_path / "log"
    put(kind, path)
    with pytest.raises(NoFileError, match="no file"):
        open_file(path, mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_links_lead_out_of_a_job_only_to_files_of_its_own_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "_jobs", None)
    one, other = tmp_path / "jobs" / "one", tmp_path / "jobs" / "other"
    for number, job in enumerate((one, other), 54321):
        (job / "log").mkdir(parents=True)
        (job / "log" / "rank").write_text(job.name)
        for path in (job, job / "log", job / "log" / "rank"):
            os.chown(path, number, number)
    (one / "model").symlink_to(other / "log")
    assert read(one / "model" / "rank") == b"other"
    plain_files.keep_to_owners(tmp_path / "jobs")
    assert read(one / "log" / "rank") == b"one"
    with pytest.raises(NoFileError):
        read(one / "model" / "rank")
