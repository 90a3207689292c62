"""Which commands a warm interpreter can run."""

import pytest

from edt_launch.agent.warm.forkable import Program, parse

PYTHON = "/env/bin/python"


def which(command):
    return {"python": PYTHON, "python3": "/usr/bin/python3"}.get(command)


@pytest.mark.parametrize(
    "words, expected",
    [
        ([PYTHON, "train.py"], Program((PYTHON,), "train.py", None, ())),
        (["python", "a/b c.py", "-m", "x"], Program(("python",), "a/b c.py", None, ("-m", "x"))),
        ([PYTHON, "-u", "train.py"], Program((PYTHON, "-u"), "train.py", None, ())),
        ([PYTHON, "-u", "-m", "train"], Program((PYTHON, "-u"), None, "train", ())),
        ((PYTHON, "-u", "train.py"), Program((PYTHON, "-u"), "train.py", None, ())),  # as agents have it
    ],
)
def test_python_programs(words, expected):
    assert parse(words, PYTHON, which) == expected


@pytest.mark.parametrize(
    "words",
    [
        [PYTHON],
        [PYTHON, "-mtrain"],
        [PYTHON, "-c", "print()"],
        [PYTHON, "-O", "train.py"],
        ["python3", "train.py"],
        ["sh", "train.py"],
    ],
)
def test_anything_else(words):
    assert parse(words, PYTHON, which) is None
