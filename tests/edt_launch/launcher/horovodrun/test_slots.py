"""Which slots have a worker."""

import subprocess
import sys
import time

import pytest

from edt_launch.launcher.horovodrun.observed import Process, find, of_process
from edt_launch.membership.protocol import Slot

LOCAL = [
    "/bin/sh",
    "-c",
    "HOROVOD_HOSTNAME=localhost HOROVOD_RANK=3 HOROVOD_LOCAL_RANK=1 PATH=/x python a.py",
]
REMOTE = [
    "ssh",
    "-o",
    "x",
    "node2",
    "cd /w ; HOROVOD_HOSTNAME=node2 HOROVOD_RANK=2 HOROVOD_LOCAL_RANK=0 python a.py",
]


@pytest.mark.parametrize(
    "words, environment, slot",
    [
        (LOCAL, {}, Process(Slot("localhost", 1), 3)),
        (REMOTE, {}, Process(Slot("node2", 0), 2)),
        (
            ["python", "a.py"],
            {"HOROVOD_HOSTNAME": "h", "HOROVOD_LOCAL_RANK": "2", "HOROVOD_RANK": "7"},
            Process(Slot("h", 2), 7),
        ),
        (REMOTE, {"HOROVOD_HOSTNAME": "h", "HOROVOD_LOCAL_RANK": "2"}, Process(Slot("node2", 0), 2)),
        (["edt-discover", "file"], {}, None),
        (["python", "a.py"], {"HOROVOD_HOSTNAME": "h", "HOROVOD_LOCAL_RANK": "x"}, None),
    ],
)
def test_a_process_says_its_slot(words, environment, slot):
    assert of_process(words, environment) == slot


PARENT = """
import subprocess, sys, time
slot = "HOROVOD_HOSTNAME=h HOROVOD_RANK=3 HOROVOD_LOCAL_RANK=1"
between = f"import subprocess; input(); subprocess.run('env {slot} sleep 60'.split())"
worker = subprocess.Popen([sys.executable, "-c", between], stdin=subprocess.PIPE)
other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(worker.pid, other.pid, flush=True)
input()
worker.stdin.write(b"\\n"); worker.stdin.flush()
input()
worker.kill(); other.kill()
"""


def test_workers_are_found_below_a_process():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        worker, other = map(int, parent.stdout.readline().split())
        assert find(parent.pid).starting == {worker, other}
        parent.stdin.write("\n")
        parent.stdin.flush()
        while not (found := find(parent.pid)).workers:
            time.sleep(0.01)
        assert list(found.workers.values()) == [Process(Slot("h", 1), 3)]
        assert found.starting == {other}
        subprocess.run(["kill", "-9", *map(str, found.workers)], check=True)
        parent.stdin.write("\n")
    assert find(parent.pid) == type(found)()
