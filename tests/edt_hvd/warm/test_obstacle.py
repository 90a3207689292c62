"""What keeps the warm server from forking workers, each looked at in a process of its own."""

import pytest

from interpreters import Interpreters

FORKED = """
import os, threading, _thread
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
JEMALLOC = "import pyarrow; pyarrow.array(range(100_000))"
USE_IT = "    for _ in range(50): pyarrow.array(range(100_000)).to_pylist()"


@pytest.mark.parametrize(
    "before, after, expected",
    [
        (JEMALLOC, USE_IT, "None"),
        (
            "threading.Thread(target=threading.Event().wait, name='mine', daemon=True).start()",
            "",
            "an import has started the thread 'mine'",
        ),
        ("_thread.start_new_thread(threading.Event().wait, ())", "", "an import has started"),
    ],
    ids=["threads of jemalloc", "a thread of Python", "a thread that Python does not know"],
)
def test_threads_keep_it_but_not_those_of_jemalloc(
    interpreters: Interpreters, before: str, after: str, expected: str
) -> None:
    done = interpreters.run(FORKED.format(before=before, after=after or "    pass"))
    assert done.stdout.startswith(expected), done.stderr
