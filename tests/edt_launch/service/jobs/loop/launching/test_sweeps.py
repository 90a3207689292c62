"""Sweeps take their time in threads of their own."""

import threading
import time
from collections.abc import Iterable
from pathlib import Path

from edt_launch.service.jobs.loop.launching.sweeps import Found, Sweeps


def test_nobody_waits_for_a_sweep_and_there_is_one_at_a_time() -> None:
    may_end, begun = threading.Event(), []

    def sweep(train: Path, hosts: Iterable[str]) -> Found:
        begun.append((train, *hosts))
        may_end.wait()
        return Found(frozenset({7}))

    sweeps = Sweeps(sweep)
    for _ in range(2):
        sweeps.begin("j", Path("train"), frozenset({"h"}))
    assert (sweeps.is_under_way("j"), sweeps.found("j")) == (True, None)
    may_end.set()
    while sweeps.is_under_way("j"):
        time.sleep(0.01)
    assert sweeps.found("j") == Found(frozenset({7}))
    assert begun == [(Path("train"), "h")]
