import re
from pathlib import Path

import pytest

from edt_launch.core.scripts import script_name, script_of, script_problem


@pytest.mark.parametrize(
    "command, script",
    [
        ("train.py --lr 0.1", "train.py"),
        ("/usr/bin/python3.12 -u -X faulthandler -W ignore train.py", "train.py"),
        ("-u train.py", "train.py"),
        ("/bin/bash -e sub/train.sh x.py", "sub/train.sh"),
        *(
            (words, None)
            for words in ("python -m train.py", "python", "bash", "bash -lc x.sh", "bash -s x.sh")
        ),
        *((words, None) for words in ("sh /opt/train.sh", "sh -o pipefail train.sh")),
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
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "nobit.sh").write_bytes(files["good.sh"])
    return tmp_path


@pytest.mark.parametrize(
    "command, problem",
    [
        *((words, None) for words in ("./good.sh", "./program", "sh nobit.sh", "python crlf.py", "crlf.py")),
        *((words, None) for words in ("./crlf.py", "sh -c crlf.sh", "echo crlf.sh", "/no/such")),
        ("papermill train.ipynb", None),
        ("./crlf.sh", "line ends of Windows"),
        ("bash -e crlf.sh", "line ends of Windows"),
        ("./bom.sh", "byte order mark"),
        ("./bare.sh", "#!"),
        ("./empty", "#!"),
        ("./nobit.sh", r"chmod \+x"),
        ("./nosuch.sh", "not a file"),
        ("good.sh", r"\./good\.sh"),
        ("python -u utf16.py", "UTF-16"),
        ("train.ipynb", "notebook"),
        ("python train.ipynb", "notebook.*nbconvert"),
    ],
)
def test_what_is_wrong_with_a_script(folder: Path, command: str, problem: str | None) -> None:
    found = script_problem(command.split(), folder, lambda _: None)
    if problem is None:
        assert found is None
    else:
        assert re.search(problem, f"{found.text}; {found.advice}")
