"""Whether a process works, from what the system shows of it."""

import mmap
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from edt_hvd.world.activity import ProcessSample, has_worked, private_memory, sample

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def seen(at: float, used: dict[int, float], is_busy: bool = False) -> ProcessSample:
    return ProcessSample(at, used, is_busy)


@pytest.mark.parametrize(
    "before, after, expected",
    [
        (seen(0, {1: 5.0}), seen(1, {1: 5.0}), False),
        (seen(0, {1: 5.0}), seen(1, {1: 5.01}), False),
        (seen(0, {1: 5.0}), seen(1, {1: 5.02}), True),
        (seen(0, {1: 5.0, 2: 0.0}), seen(10, {1: 5.1, 2: 0.1}), True),
        (seen(0, {1: 5.0}), seen(1, {1: 5.0}, is_busy=True), True),
        (seen(0, {1: 5.0}), seen(1, {1: 5.0, 2: 0.0}), True),
        (seen(0, {1: 5.0, 2: 9.0}), seen(1, {1: 5.0}), False),
        (None, seen(1, {1: 5.0}), True),
        (seen(0, {1: 5.0}), None, True),
    ],
    ids=["nothing", "little", "a step", "two", "disk", "new", "ended", "first", "unknown"],
)
def test_a_process_works_if_somebody_uses_a_processor(
    before: ProcessSample | None, after: ProcessSample | None, expected: bool
) -> None:
    assert has_worked(before, after) == expected


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that computes once it is told to, and its own child."""
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()\\nwhile True: pass'])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, text=True) as process:
        yield process
        for each in sorted((sample(0.0) or ProcessSample(0, {}, False)).used, reverse=True):
            if each in grandchildren(process.pid):
                subprocess.run(["kill", "-9", str(each)], check=False)
        process.kill()


def grandchildren(pid: int) -> set[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return {int(word) for word in file.read().split()}
    except FileNotFoundError:
        return set()


@linux_only
def test_what_a_process_has_started_works_for_it(child: subprocess.Popen[str]) -> None:
    while not grandchildren(child.pid):
        time.sleep(0.01)
    (key,) = grandchildren(child.pid)
    before = sample(0.0)
    assert before is not None
    assert key in before.used
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    while not has_worked(before, sample(1.0)):
        time.sleep(0.01)


@linux_only
def test_other_threads_work_but_not_ours() -> None:
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait, name=name) for name in ("edt-heartbeat", "a script's")]
    for thread in threads:
        thread.start()
    found = sample(0.0)
    ended.set()
    for thread in threads:
        thread.join()
    assert found is not None
    assert [thread.native_id in found.used for thread in threads] == [False, True]


def test_memory_that_is_written_to_becomes_private() -> None:
    before = private_memory()
    if before is None:
        pytest.skip("this system does not show private memory")
    size = 2**26
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[::4096] = bytes(size // 4096)
        after = private_memory()
    assert after is not None
    assert after - before > size // 2
