"""What keeps the warm server from forking workers, each looked at in a process of its own."""

import subprocess
import sys

import pytest

FORKED = """
import os, sys
{before}
from edt_hvd.warm.main import obstacle
found = obstacle()
if found is None and os.fork() == 0:
{after}
    os._exit(0)
elif found is None:
    assert os.wait()[1] == 0
print(found)
"""


def found(before: str, after: str = "    pass") -> str:
    command = [sys.executable, "-c", FORKED.format(before=before, after=after)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_nothing_keeps_it_where_no_thread_was_started() -> None:
    assert found("import sklearn.datasets, horovod.torch") == "None"


@pytest.mark.parametrize("name", ["pyarrow", "pandas"])
def test_threads_of_jemalloc_do_not_and_a_fork_can_use_it(name: str) -> None:
    after = "    import pyarrow\n    for _ in range(50): pyarrow.array(range(100_000)).to_pylist()"
    before = f"import {name}, pyarrow; pyarrow.array(range(100_000))"
    assert found(before, after) == "None"


def test_a_thread_of_python_does() -> None:
    before = (
        "import threading; threading.Thread(target=threading.Event().wait, name='mine', daemon=True).start()"
    )
    assert found(before) == "an import has started the thread 'mine'"


def test_a_thread_that_python_does_not_know_does() -> None:
    before = """
import _thread, threading
_thread.start_new_thread(threading.Event().wait, ())
"""
    assert found(before).startswith("an import has started")
