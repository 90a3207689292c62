"""Data sets on the command line, against the service's own application."""

import json
import tarfile
from pathlib import Path

import pytest

from cli_service import CliService
from ended import Edt
from world import tar


@pytest.fixture
def world(service: CliService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliService:
    service.log_on("ann")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return service


def test_a_folder_is_put_listed_fetched_and_deleted(edt: Edt, world: CliService, tmp_path: Path) -> None:
    (tmp_path / "digits/train/.venv").mkdir(parents=True)
    (tmp_path / "digits/train/.venv/a.csv").write_text("1,2")
    (tmp_path / "digits/.edtignore").write_text("train/")
    (tmp_path / "digits/out").symlink_to("/etc")
    assert "no data sets" in edt("data", "ls").out
    put = edt("data", "put", "digits", str(tmp_path / "digits"))
    assert put.out == "users/ann/digits\n"
    assert "left out: out -> /etc" in put.err
    again = edt("data", "put", "digits", str(tmp_path / "digits"))
    assert "there is a data set ann/digits already; give --replace" in again.err
    listed = json.loads(edt("data", "ls", "--json").out)["datasets"]
    assert [(one["path"], one["files"]) for one in listed] == [("users/ann/digits", 2)]
    assert "a.csv" in edt("data", "ls", "users/ann/digits/train/.venv").out
    assert edt("data", "get", "digits", "-o", "there.tar.gz").code == 0
    with tarfile.open("there.tar.gz") as archive:
        assert "digits/train/.venv/a.csv" in archive.getnames()
    assert edt("data", "get", "digits", "train/.venv/a.csv").code == 0
    assert Path("a.csv").read_text() == "1,2"
    assert edt("data", "rm", "digits", "train/.venv/a.csv").code == 0
    assert edt("data", "rm", "users/ann/digits").err == "ann/digits is deleted\n"
    assert json.loads(edt("data", "ls", "--json").out)["datasets"] == []


def test_an_archive_is_unpacked_or_stored(edt: Edt, world: CliService, tmp_path: Path) -> None:
    archive = tmp_path / "cifar.tar.gz"
    archive.write_bytes(tar({"train/a.csv": b"1"}))
    assert json.loads(edt("data", "put", "one", str(archive), "--json").out)["files"] == 1
    assert edt("data", "put", "two", str(archive), "--no-unpack").code == 0
    (tmp_path / "more.csv").write_text("2")
    assert edt("data", "put", "two", str(tmp_path / "more.csv")).code == 0
    assert edt("data", "put", "two", str(tmp_path / "more.csv"), "--replace").code == 0
    folder = world.settings.data_folder / "users/ann"
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert [name for name in found if not name.startswith(".")] == [
        "one/train/a.csv", "two/cifar.tar.gz", "two/more.csv",
    ]  # fmt: skip
    mistaken = edt("data", "put", "x", str(tmp_path / "none"))
    assert "there is no" in mistaken.err
    assert "that is a data set of bob" in edt("data", "put", "bob/x", str(archive)).err
