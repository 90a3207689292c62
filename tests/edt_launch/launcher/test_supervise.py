"""A horovodrun that is watched; the rest is in test_job."""

import sys

import psutil
import pytest

from edt_launch.errors import StartError
from edt_launch.launcher.supervise import Supervised, Tick, Told
from edt_launch.view.output import Line

PROGRAM = """
import os, sys
os.write(int(os.environ["EDT_EVENTS_FD"]), b'{"event": "one"}\\n')
print("[0]<stdout>:hello")
sys.exit(3)
"""


def test_events_come_before_the_lines_that_they_explain():
    with Supervised([sys.executable, "-c", PROGRAM], {}, known=[0]) as child:
        found = [happening for happening in child.happenings() if not isinstance(happening, Tick)]
        assert found == [Told({"event": "one"}), Line(0, "stdout", "hello")]
        assert child.exit_code == 3


def test_what_cannot_be_run_is_a_start_error():
    with pytest.raises(StartError, match="cannot run /no/such/program"):
        Supervised(["/no/such/program"], {})


def test_nothing_outlives_its_context():
    with Supervised([sys.executable, "-c", "import time; time.sleep(600)"], {}) as child:
        pid = child.pid
    assert not psutil.pid_exists(pid)
