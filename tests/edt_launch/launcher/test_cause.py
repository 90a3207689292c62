"""The cause of a failure, from what a worker has printed last."""

import subprocess
import sys
from pathlib import Path

import pytest

from edt_launch.launcher.cause import cause_of

SCRIPT = """
class Boom(Exception):
    pass

def train(how):
    if how == "own":
        raise Boom("bad\\nvery bad")
    if how == "chained":
        try:
            1 / 0
        except ZeroDivisionError as error:
            raise ValueError("no such thing") from error
"""


@pytest.mark.parametrize(
    "how, expected",
    [
        ("own", "Boom: bad (train.py, line 7)"),
        ("chained", "ValueError: no such thing (train.py, line 12)"),
    ],
)
def test_what_python_prints_of_an_exception(how: str, expected: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{SCRIPT}\nprint('an epoch')\ntrain({how!r})\n")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    lines = [*ended.stdout.splitlines(), *ended.stderr.splitlines(), "and a last line"]
    assert str(cause_of(lines)) == expected
