"""Whether a process works, from what the system shows of it."""

import sys
import threading

import pytest

from edt_hvd.world.activity import ProcessSample, has_worked, sample

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
    assert [thread.native_id in found.used for thread in threads] == [False, True]
