from pathlib import Path

import pytest

from edt_launch.service.app.home import Home


@pytest.mark.parametrize(
    "job",
    ["", ".", "..", "j", "../jaaaaaaaa", "jaaaaaaaa/", "jaaaaaaaa\n", "JAAAAAAAA", "jaaaaaaa1", "jaaaaaaaaa"],
)
def test_only_ids_become_folders(job: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        Home(Path("/edt")).job(job)


def test_the_default_is_in_the_users_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDT_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ann")
    assert Home.default().root == Path("/home/ann/.edt")
    monkeypatch.setenv("EDT_HOME", "/data/edt")
    assert Home.default().root == Path("/data/edt")
