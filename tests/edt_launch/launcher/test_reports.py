"""Events as edt-launch reads them."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from edt_launch.core.event_codec import write
from edt_launch.launcher.reports import Reports, signal_name
from edt_launch.membership.protocol import (
    Action,
    Failed,
    Finish,
    Late,
    Left,
    Missing,
    Noticed,
    Phase,
    Slot,
    Waiting,
    Worker,
)

WORKER = Worker(4, Slot("h", 1, "7"), Phase.ACTIVE, started_at=0.0, rank=2, notice="spot")
PLACE = {"worker": 4, "host": "h", "slot": 1, "device": "7"}


def sent(send: Callable[[Reports], None]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    send(Reports(lambda event: events.append(json.loads(json.dumps(write(event))))))
    assert all(event.pop("time") > 0 for event in events)
    return events


def told(action: Action) -> dict[str, Any]:
    (event,) = sent(lambda reports: reports.report(action))
    return event


def test_a_worker_that_is_started_is_told_once_for_each_of_its_devices() -> None:
    started = {"event": "started", **PLACE, "rank": 2}
    assert sent(lambda reports: reports.started(WORKER)) == [started]
    several = replace(WORKER, slot=Slot("h", 1, "7,9"))
    assert sent(lambda reports: reports.started(several)) == [started, {**started, "device": "9"}]
    none = replace(WORKER, slot=Slot("h", 1))
    assert sent(lambda reports: reports.started(none)) == [{**started, "device": None}]


def test_a_gang_is_a_world() -> None:
    (event,) = sent(lambda reports: reports.gang([WORKER]))
    assert (event["event"], event["size"], event["ranks"]) == ("world", 1, {"4": 2})


def test_what_is_told_of_workers() -> None:
    assert told(Noticed(WORKER)) == {"event": "leaving", **PLACE, "rank": 2, "reason": "spot"}
    assert told(Left(WORKER)) == {"event": "left", "worker": 4}
    times = {"seconds": 30.0, "longest": 5.0, "waited": 60.0, "limit": None}
    assert told(Late((WORKER,), **times)) == {"event": "slow_start", "workers": [PLACE], **times}
    finished = {"event": "finished", "exit_code": 1, "reason": "why", "left": True, "aborted": False}
    assert told(Finish(False, "why", left=True)) == finished
    assert told(Finish(False, "SIGTERM", aborted=True))["aborted"]


@pytest.mark.parametrize("retry_after", [5.0, None])
def test_a_failure(retry_after: float | None) -> None:
    event = told(Failed(WORKER, 137, retry_after, "is silent"))
    assert (event["exit_code"], event["signal"], event["reason"]) == (137, "SIGKILL", "is silent")
    assert event["retry_after"] == retry_after


def test_a_shortage() -> None:
    lacks = (Missing(Slot("h", 0), "failed", 4.0), Missing(Slot("h", 1), "is starting", None))
    assert told(Waiting(1, 3, 600.0, 3, lacks)) == {
        "event": "waiting",
        "have": 1,
        "need": 3,
        "seconds": 600.0,
        "allocated": 3,
        "missing": [
            {"host": "h", "slot": 0, "reason": "failed", "retry_after": 4.0},
            {"host": "h", "slot": 1, "reason": "is starting", "retry_after": None},
        ],
    }


@pytest.mark.parametrize(
    "exit_code, name", [(137, "SIGKILL"), (-9, "SIGKILL"), (134, "SIGABRT"), (1, None), (255, None)]
)
def test_signals_behind_exit_codes(exit_code: int, name: str | None) -> None:
    assert signal_name(exit_code) == name
