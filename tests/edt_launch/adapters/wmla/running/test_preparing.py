"""What a WMLA job finds when it starts."""

import json
import os
from pathlib import Path

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.adapters.wmla.running.preparing import Prepared, prepare


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "my model"
    (folder / "inner").mkdir(parents=True)
    (folder / "main.py").write_text("first")
    (folder / "inner" / "data").write_text("x")
    (folder / "link").symlink_to("main.py")
    os.mkfifo(folder / "pipe")
    return folder


def prepared(result: Path, code: Path, framework=Framework.ELASTIC, data=None, **inherited) -> Prepared:
    return prepare(ResultDir(result), framework, code, data, inherited)


def test_the_code_is_copied_under_its_name(tmp_path, model):
    found = prepared(tmp_path / "out", model)
    work = tmp_path / "out" / "_submitted_code" / "my model"
    assert found.layout.work == found.workers(["x"]).directory == work
    assert sorted(path.name for path in work.iterdir()) == ["inner", "link", "main.py"]
    assert os.readlink(work / "link") == "main.py"


def test_a_job_that_goes_on_has_the_code_of_now(tmp_path, model):
    prepared(tmp_path / "out", model)
    (model / "main.py").write_text("second")
    (model / "inner" / "data").unlink()
    work = prepared(tmp_path / "out", model).layout.work
    assert (work / "main.py").read_text() == "second"
    assert not (work / "inner" / "data").exists()
    assert [path.name for path in work.parent.iterdir()] == ["my model"]


@pytest.mark.parametrize("inside", ["", "top", "top/inner"])
def test_code_that_was_submitted_stays_where_it_is(tmp_path, inside):
    code = tmp_path / "out" / "_submitted_code" / inside
    code.mkdir(parents=True)
    (code / "main.py").touch()
    assert prepared(tmp_path / "out", code).layout.work == code
    assert [path.name for path in code.iterdir()] == ["main.py"]


def test_programs_may_write_into_the_copy_of_read_only_code(tmp_path, model):
    (model / "inner").chmod(0o555)
    model.chmod(0o555)
    for _ in range(2):
        work = prepared(tmp_path / "out", model).layout.work
        assert all(folder.stat().st_mode & 0o777 == 0o755 for folder in (work, work / "inner"))


def test_the_data_are_where_the_user_says_or_among_the_results(tmp_path, model):
    assert prepared(tmp_path / "1", model, data=tmp_path).layout.data == tmp_path
    assert prepared(tmp_path / "2", model, DATA_DIR="/theirs").layout.data == Path("/theirs")
    default = prepared(tmp_path / "3", model).layout.data
    assert default == tmp_path / "3" / "data"
    assert default.is_dir()


def test_names_are_kept(tmp_path, model):
    first = prepared(tmp_path / "out", model, DLI_EXECID="mine").identity
    assert json.loads((tmp_path / "out" / "run" / "wmla" / "identity.json").read_text())["exec_id"] == "mine"
    assert prepared(tmp_path / "out", model).identity == first
    ResultDir(tmp_path / "out").identity.write_text("half")
    assert prepared(tmp_path / "out", model).identity != first
