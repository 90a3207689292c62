"""How a script is run: as by Python itself, with a few things seen to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiers import full


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edt_hvd.wmla.script", script.name, *arguments]
    return subprocess.run(
        command, cwd=script.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "a model's folder"
    folder.mkdir()
    (folder / "beside.py").write_text("name = 'beside'\n")
    return folder / "main.py"


def test_a_script_sees_what_it_would_see_without_us(script: Path) -> None:
    script.write_text(
        "import sys, os, beside\n"
        "def function(): pass\n"
        "print(sys.argv, sys.path[0], __name__, function.__module__, __file__, sep='|')\n"
        "assert sys.modules['__main__'].function is function\n"
        "sys.exit(7)\n"
    )
    done = run(script, "--epochs", "3")
    assert done.returncode == 7, done.stderr
    argv = [str(script), "--epochs", "3"]
    assert done.stdout == f"{argv}|{script.parent}|__main__|__main__|{script}\n"


@pytest.mark.parametrize("end", [full(""), "sys.exit()"])
def test_threads_of_a_gang_may_finish_what_they_do(
    script: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    script.write_text(
        "import sys, threading\n"
        "over = threading.Event()\n"
        "def work():\n"
        "    over.wait()\n"
        "    print(sum(range(100_000)))\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        f"over.set()\n{end}\n"
    )
    assert run(script).stdout == "4999950000\n"


@pytest.mark.parametrize("start", [".", full("elsewhere")])
def test_modules_are_found_from_any_directory(script: Path, start: str) -> None:
    inner, here = script.parent / "sub", script.parent / start
    for folder in (inner, here):
        folder.mkdir(exist_ok=True)
    (inner / "near.py").write_text("name = 'near'\n")
    (inner / "main.py").write_text(
        "import sys, near, beside\nprint(sys.path[0], near.name, beside.name, sep='|')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "edt_hvd.wmla.script", inner / "main.py"],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(script.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{inner}|near|beside\n", done.stderr


def test_torchvision_may_be_the_first_import(script: Path) -> None:
    script.write_text("from torchvision import transforms\n")
    assert run(script).returncode == 0


def test_an_error_is_shown_as_if_we_were_not_there(script: Path) -> None:
    script.write_text("def fail():\n    raise ValueError('on purpose')\nfail()\n")
    done = run(script)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{script}", line 3, in <module>'
    assert lines[-1] == "ValueError: on purpose"


def test_a_script_that_is_no_python_says_where(script: Path) -> None:
    script.write_text("def\n")
    done = run(script)
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert f'File "{script}", line 1' in done.stderr


@pytest.mark.parametrize("package", ["keras", full("tensorflow"), full("tf_keras")])
def test_a_framework_that_is_not_trained_here_is_refused(script: Path, package: str) -> None:
    script.write_text(f"import {package}.layers\n")
    done = run(script)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
    assert "PyTorch" in done.stderr.splitlines()[-1]


def test_other_modules_that_are_missing_are_not_refused(script: Path) -> None:
    script.write_text("import nobody_has_this\n")
    done = run(script)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'nobody_has_this'"
