import re
from pathlib import Path

import pytest

from edt_launch.core.scripts import script_name, script_of, script_problem


@pytest.mark.parametrize(
    "command, script",
    [
        ("train.py --lr 0.1", "train.py"),
        ("/usr/bin/python3.12 -u -X faulthandler -W ignore train.py", "train.py"),
        ("python -m train.py", None),
        ("python -um train", None),
        ("python -uWignore tool", "tool"),
        ("python -Xdev -c pass", None),
        ("python -cpass train.py", None),
        ("python - train.py", None),
        ("python-config train.py", None),
        ("python", None),
        ("-u train.py", "train.py"),
        ("/bin/bash -e sub/train.sh x.py", "sub/train.sh"),
        ("bash -lc train.sh", None),
        ("bash -s train.sh", None),
        ("sh /opt/train.sh", None),
        ("sh -eo pipefail train.sh", "train.sh"),
        ("bash --rcfile x --norc train", "train"),
        ("zsh --emulate sh train.sh", "train.sh"),
        ("bash", None),
    ],
)
def test_the_script_of_a_command(command: str, script: str | None) -> None:
    assert script_of(command.split()) == script


@pytest.mark.parametrize(
    "command, name",
    [
        ("python src/train.py --config x", "train"),
        ("python -u -m pkg.train --file other.py", "pkg.train"),
        ("torchrun train.py", "train"),
        ("./run.sh", "run.sh"),
        ("python -c pass", "python"),
        ("python -m", "python"),
        ("python -um pkg.train", "pkg.train"),
    ],
)
def test_the_name_of_a_job(command: str, name: str) -> None:
    assert script_name(command.split()) == name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "good.sh": b"#!/bin/sh\ntrue\n",
        "crlf.sh": b"#!/bin/sh\r\ntrue\r\n",
        "crlf.py": b"#!/usr/bin/python\r\npass\r\n",
        "bom.sh": b"\xef\xbb\xbf#!/bin/sh\ntrue\n",
        "bare.sh": b"true\n",
        "utf16.py": "pass\n".encode("utf-16"),
        "program": b"\x7fELF\0\r\n",
        "empty": b"",
        "python.sh": b"#!/no/such/python -u\n",
        "env.sh": b"#!/usr/bin/env -S A=1 nosuch -u\n",
        "unset.sh": b"#!/usr/bin/env -S -u FOO nosuch\n",
        "variable.sh": b"#!/usr/bin/env -S ${VENV}/bin/nosuch\n",
        "quoted.sh": b"#!/usr/bin/env -S 'A=1 2' \"nosuch\"\n",
        "path.sh": b"#!/usr/bin/env -S PATH=/opt nosuch\n",
        "relative.sh": b"#!bin/nosuch\n",
        "relative-env.sh": b"#!/usr/bin/env bin/nosuch\n",
        "package/__main__.py": b"",
    }
    (tmp_path / "package").mkdir()
    (tmp_path / "sub").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "nobit.sh").write_bytes(files["good.sh"])
    return tmp_path


@pytest.mark.parametrize(
    "command, problem",
    [
        ("./good.sh", None),
        ("./program", None),
        ("sh nobit.sh", None),
        ("python crlf.py", None),
        ("crlf.py", None),
        ("sh -c crlf.sh", None),
        ("sh -eo pipefail good.sh", None),
        ("echo crlf.sh", None),
        ("python -m nosuch", None),
        ("python package", None),
        ("./unset.sh", None),
        ("./variable.sh", None),
        ("./quoted.sh", None),
        ("./path.sh", None),
        ("./relative.sh", None),
        ("./relative-env.sh", None),
        ("bash tool", None),
        ("zsh --emulate sh good.sh", None),
        ("papermill train.ipynb", "papermill: command not found"),
        ("python3.99 crlf.py", "python3.99: command not found"),
        ("/no/such", "not a file"),
        ("./crlf.sh", "line ends of Windows"),
        ("FOLDER/crlf.sh", "line ends of Windows"),
        ("bash -e crlf.sh", "line ends of Windows"),
        ("./bom.sh", "byte order mark"),
        ("./bare.sh", "#!"),
        ("./empty", "#!"),
        ("./nobit.sh", r"chmod \+x"),
        ("./nosuch.sh", "not a file"),
        ("./python.sh", "run by /no/such/python"),
        ("./env.sh", "run by nosuch"),
        ("good.sh", r"\./good\.sh"),
        ("./sub", "is a folder"),
        ("sh ./sub", "is a folder"),
        ("sh nosuch.sh", "not a file"),
        ("python sub", "folder without __main__.py"),
        ("python -u nosuch", "not a file"),
        ("nosuch.py", "not a file"),
        ("python -u utf16.py", "UTF-16"),
        ("train.ipynb", "notebook"),
        ("python train.ipynb", "notebook.*nbconvert"),
    ],
)
def test_what_is_wrong_with_a_script(folder: Path, command: str, problem: str | None) -> None:
    words = command.replace("FOLDER", str(folder)).split()
    present = ("sh", "bash", "zsh", "echo", "python", "/bin/sh", "/usr/bin/env", "/usr/bin/python")
    found = script_problem(words, folder, lambda name: name if name in present else None)
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(problem, f"{found.text}; {found.advice}")


@pytest.mark.parametrize(
    "command",
    [
        *("nosuch", "/no/such", "./python.sh", "good.sh", "/no/such.py"),
        *("python /no/such.py", "python FOLDER/sub", "bash /no/such.sh"),
    ],
)
def test_what_another_machine_has_is_not_judged_here(folder: Path, command: str) -> None:
    assert script_problem(command.replace("FOLDER", str(folder)).split(), folder, None) is None


def test_no_machine_runs_a_notebook(folder: Path) -> None:
    assert script_problem(["python", "/no/such.ipynb"], folder, None) is not None
