"""The guard is on in this process while a test runs; it cannot be uninstalled, but lifted."""

import io
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from edt_hvd.wmla.errors import WriteRefusedError
from edt_hvd.wmla.write_guard import WriteGuard


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Has the folder of a job, and one outside of it; temporary files are elsewhere."""
    job = tmp_path / "job"
    (job / "result" / "log" / "one").mkdir(parents=True)
    (job / "result" / "there").write_text("it is there")
    (job / "main.py").touch()
    (job / "elsewhere").mkdir()
    (job / "result" / "to-elsewhere").symlink_to(job / "elsewhere")
    (job / "elsewhere" / "to-result").symlink_to(job / "result")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(job)
    return job


@pytest.fixture
def guard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteGuard]:
    monkeypatch.setattr(torch, "save", torch.save)
    monkeypatch.setattr(torch.serialization, "save", torch.serialization.save)
    one = WriteGuard(folder / "result", [folder / "result" / "log" / "one"])
    one.install()
    yield one
    one.is_lifted = True


def run(folder: Path, statement: str, guard: WriteGuard) -> None:
    """As a line of a script."""
    modules: dict[str, Any] = {"os": os, "shutil": shutil, "sqlite3": sqlite3, "tempfile": tempfile}
    names = {**modules, "Path": Path, "guard": guard, "io": io, "torch": torch}
    exec(compile(f"def write():\n    {statement}\nwrite()\n", folder / "main.py", "exec"), names)


@pytest.mark.parametrize(
    "statement, deed",
    [
        ("open('result/new', 'w')", "writes"),
        ("shutil.rmtree('result/log')", "removes"),
        ("os.rename('../job', '../other')", "moves"),
        ("torch.save({}, 'result/weights.pt')", "writes"),
        ("sqlite3.connect('result/trials.db')", "writes"),
        ("open('elsewhere/to-result/new', 'w')", "writes"),
    ],
)
def test_what_belongs_to_the_job_is_not_written(
    folder: Path, guard: WriteGuard, statement: str, deed: str
) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(WriteRefusedError) as caught:
        run(folder, statement, guard)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'main.py'}, line 2 {deed} ")
    assert "outside of train(): every executor runs the script up to there" in message
    assert 'os.environ.get("EDT_WMLA_ROLE") != "executor"' in message
    assert sorted(folder.rglob("*")) == before
    assert (folder / "result" / "there").read_text() == "it is there"


@pytest.mark.parametrize(
    "statement",
    [
        "open('result/there').close()",
        "os.makedirs('result/log', exist_ok=True)",
        "open('result/log/one/new', 'w').close()",
        "open('elsewhere/new', 'w').close()",
        "tempfile.TemporaryDirectory().cleanup()",
        "with guard.lifted(): open('result/new', 'w').close(), shutil.rmtree('result')",
    ],
)
def test_everything_else_goes(folder: Path, guard: WriteGuard, statement: str) -> None:
    run(folder, statement, guard)
