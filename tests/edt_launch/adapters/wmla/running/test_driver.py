"""The process that runs a program's script; the rest is in test_driven."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from edt_launch.adapters.wmla.running.driver import (
    DriverProcess,
    Invalid,
    Requests,
)
from edt_launch.launcher.view.output import DRIVER, Line
from edt_messages.wmla import MAX_LINE, ExecutorMessage, Limit, Train
from started import started

ASKS = """
import os, sys
os.write(int(os.environ["EDT_WMLA_LAUNCHER"]), b'{"type": "limit", "max_workers": 3}\\n')
print(os.getcwd())
sys.stdout.write("x" * 200_000)
sys.exit(3)
"""


def driver(folder: Path, program: str) -> DriverProcess:
    printed = (folder / "stdout", folder / "stderr")
    return DriverProcess([sys.executable, "-c", program], {}, folder, printed, print)


def run_to_the_end(one):
    found = []
    while one.exit_code is None:
        found += one.happenings(0.1)
    return found


def test_everything_it_says_is_heard_before_its_exit_code_is_known(tmp_path):
    with driver(tmp_path, ASKS) as one:
        found = run_to_the_end(one)
        assert one.exit_code == 3
        assert list(one.happenings(0)) == []
    lines = [happening for happening in found if isinstance(happening, Line)]
    assert lines[0] == Line(DRIVER, "stdout", str(tmp_path))
    assert sum(len(line.text) for line in lines[1:]) == 200_000
    assert Limit(3) in found
    assert (tmp_path / "stdout").stat().st_size == len(f"{tmp_path}\n") + 200_000


READS_LATE = """
import os, socket
stream = socket.socket(fileno=int(os.environ["EDT_WMLA_LAUNCHER"])).makefile("rb")
print("ready", flush=True)
assert [len(stream.readline()) > 1000 for _ in range(1000)] == [True] * 1000
"""


def test_nobody_waits_for_a_driver_that_does_not_read(tmp_path):
    with driver(tmp_path, READS_LATE) as one:
        for _ in range(1000):  # more than fits into a socket
            one.send(ExecutorMessage(1, "x" * 1000))
        run_to_the_end(one)
        assert one.exit_code == 0
        one.send(ExecutorMessage(1, "nobody reads this"))


LAUNCHER = """
import subprocess, sys, time
from pathlib import Path
from edt_launch.adapters.wmla.running.driver import DriverProcess
program = '''
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("pids", child.pid, flush=True)
time.sleep(600)
'''
folder = Path(sys.argv[1])
files = folder / "o", folder / "e"
with DriverProcess([sys.executable, "-c", program], {}, folder, files, print) as driver:
    while True:
        for line in driver.happenings(0.1):
            print(line.text, driver.pid, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does it")
def test_it_dies_with_its_children_when_the_launcher_is_killed(tmp_path):
    words = [sys.executable, "-c", LAUNCHER, str(tmp_path)]
    with started(words, stdout=subprocess.PIPE, text=True) as launcher:
        pids = list(map(int, launcher.stdout.readline().split()[1:]))
        family = [psutil.Process(pid) for pid in pids]
        launcher.kill()
    assert len(family) == 2
    alive = [p for p in psutil.wait_procs(family, timeout=60)[1] if p.status() != psutil.STATUS_ZOMBIE]
    assert alive == []


TRAIN = {"type": "train", "number": 1, "program": ["python", "-m", "x"], "max_workers": 16}


def line(message):
    return json.dumps(message).encode() + b"\n"


def test_messages_come_in_whatever_pieces():
    requests = Requests()
    found = []
    for byte in line(TRAIN) + line({"type": "limit", "max_workers": 3}):
        found += requests.feed(bytes([byte]))
    assert found == [Train(1, ("python", "-m", "x"), 16), Limit(3)]


@pytest.mark.parametrize(
    "wrong, reason",
    [
        (line({**TRAIN, "number": 0}), "number: 0, expected int from 1"),
        (line({"type": "ended", "number": 1, "exit_code": 0, "message": ""}), "is none of a driver"),
        (b"x" * (MAX_LINE + 1), "a line of more than 1,048,576 bytes"),
    ],
)
def test_what_is_none_of_its_messages_is_invalid(wrong, reason):
    (found,) = Requests().feed(wrong)
    assert isinstance(found, Invalid)
    assert reason in found.reason
