"""Events as edt-launch reads them."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from edt_launch.core.event_codec import write
from edt_launch.launcher.reports import Reports
from edt_launch.membership.protocol import Phase, Slot, Worker

WORKER = Worker(4, Slot("h", 1, "7"), Phase.ACTIVE, started_at=0.0, rank=2, notice="spot")
PLACE = {"worker": 4, "host": "h", "slot": 1, "device": "7"}


def sent(send: Callable[[Reports], None]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    send(Reports(lambda event: events.append(json.loads(json.dumps(write(event))))))
    assert all(event.pop("time") > 0 for event in events)
    return events


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
