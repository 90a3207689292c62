import re
from pathlib import Path

import pytest

from edt_launch.core.scripts import script_of, script_problem


@pytest.mark.parametrize(
    "command, script",
    [
        ("train.py --lr 0.1", "train.py"),
        ("/usr/bin/python3.12 -u -X faulthandler -W ignore train.py", "train.py"),
        ("python -m train.py", None),
        ("python -Xdev -c pass", None),
        ("python -cpass train.py", None),
        ("python-config train.py", None),
        ("-u train.py", "train.py"),
        ("/bin/bash -e sub/train.sh x.py", "sub/train.sh"),
        ("bash -lc train.sh", None),
        ("sh -eo pipefail train.sh", "train.sh"),
        ("zsh --emulate sh train.sh", "train.sh"),
    ],
)
def test_the_script_of_a_command(command: str, script: str | None) -> None:
    assert script_of(command.split()) == script


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "good.sh": b"#!/bin/sh\ntrue\n",
        "crlf.sh": b"#!/bin/sh\r\ntrue\r\n",
        "bare.sh": b"true\n",
        "utf16.py": "pass\n".encode("utf-16"),
        "program": b"\x7fELF\0\r\n",
        "python.sh": b"#!/no/such/python -u\n",
        "env.sh": b"#!/usr/bin/env -S A=1 nosuch -u\n",
        "quoted.sh": b"#!/usr/bin/env -S 'A=1 2' \"nosuch\"\n",
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
        ("echo crlf.sh", None),
        ("python package", None),
        ("./quoted.sh", None),
        ("bash tool", None),
        ("./crlf.sh", "line ends of Windows"),
        ("bash -e crlf.sh", "line ends of Windows"),
        ("./bare.sh", "#!"),
        ("./nobit.sh", r"chmod \+x"),
        ("./nosuch.sh", "not a file"),
        ("./python.sh", "run by /no/such/python"),
        ("./env.sh", "run by nosuch"),
        ("good.sh", r"\./good\.sh"),
        ("./sub", "is a folder"),
        ("sh nosuch.sh", "not a file"),
        ("python sub", "folder without __main__.py"),
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
