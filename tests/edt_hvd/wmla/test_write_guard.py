"""Each case runs in a process of its own: there is no way to take an audit hook back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PREPARED = """
import os, shutil, sys, tempfile
from pathlib import Path
from edt_hvd.wmla.write_guard import WriteGuard

result = Path("result").absolute()
guard = WriteGuard(result, [result / "log" / "one"])
guard.install()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has the folder of a job, and one outside of it; its own temporary files are elsewhere."""
    (tmp_path / "job" / "result" / "log" / "one").mkdir(parents=True)
    (tmp_path / "job" / "result" / "there").write_text("it is there")
    (tmp_path / "job" / "elsewhere").mkdir()
    (tmp_path / "temporary").mkdir()
    return tmp_path / "job"


def run(folder: Path, statement: str) -> subprocess.CompletedProcess[str]:
    (folder / "main.py").write_text(PREPARED + statement + "\n")
    environment = os.environ | {"TMPDIR": str(folder.parent / "temporary")}
    return subprocess.run(
        [sys.executable, "main.py"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "statement, deed",
    [
        ("open('result/new', 'w')", "writes"),
        ("Path('result/there').write_text('')", "writes"),
        ("os.open('result/there', os.O_RDWR)", "writes"),
        ("open(b'result/there', 'r+b')", "writes"),
        ("os.makedirs('result/a/b')", "writes"),
        ("os.remove('result/there')", "removes"),
        ("os.unlink('there', dir_fd=os.open('result', os.O_RDONLY))", "removes"),
        ("os.rename('result/there', 'elsewhere/here')", "moves"),
        ("shutil.move('main.py', 'result/main.py')", "moves"),
        ("os.symlink('main.py', 'result/main.py')", "writes"),
        ("os.link('main.py', 'result/main.py')", "writes"),
        ("os.truncate('result/there', 0)", "writes"),
        ("os.rmdir('result/log/one/..')", "removes"),
        ("shutil.copy('main.py', 'result/main.py')", "writes"),
        ("shutil.rmtree('result/log')", "removes"),
        ("shutil.rmtree('elsewhere', ignore_errors=True)", "removes"),
        ("shutil.rmtree('..')", "removes"),
    ],
)
def test_what_belongs_to_the_job_is_not_written(folder: Path, statement: str, deed: str) -> None:
    before = sorted(folder.rglob("*"))
    done = run(folder, f"def write():\n    {statement}\nwrite()")
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    line = PREPARED.count("\n") + 2
    assert f"WriteRefusedError: {folder / 'main.py'}, line {line} {deed} " in last
    assert "before train(): every executor runs the script up to there" in last
    assert 'os.environ.get("EDT_WMLA_ROLE") != "executor"' in last
    assert sorted(folder.rglob("*")) == sorted([*before, folder / "main.py"])
    assert (folder / "result" / "there").read_text() == "it is there"


@pytest.mark.parametrize(
    "statement",
    [
        "open('result/there').read()",
        "os.makedirs('result/log', exist_ok=True)",
        "Path('result/missing').unlink(missing_ok=True)",
        "shutil.rmtree('result/missing', ignore_errors=True)",
        "shutil.rmtree('missing', ignore_errors=True)",
        "open('result/log/one/new', 'w').close()",
        "shutil.rmtree('result/log/one')",
        "Path('result/__pycache__/x').parent.mkdir(), open('result/__pycache__/x', 'w').close()",
        "open('elsewhere/new', 'w').close()",
        "open(os.open(os.devnull, os.O_WRONLY), 'w').close()",
        "tempfile.TemporaryDirectory().cleanup()",
        "guard.lift(), open('result/new', 'w').close(), shutil.rmtree('result')",
    ],
)
def test_everything_else_goes(folder: Path, statement: str) -> None:
    done = run(folder, statement)
    assert done.returncode == 0, done.stderr
