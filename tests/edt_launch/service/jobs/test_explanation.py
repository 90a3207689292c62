import re
from typing import Any

import pytest

from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.explanation import explain
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted

WHY = {
    "binding": "max",
    "share": 4.0,
    "target": 2,
    "path": [["", 4.0], ["ann", 4.0]],
    "text": "has 2 of 2 (its maximum)",
    "change": "A higher --max would let it grow.",
}


def record(**fields: Any) -> JobRecord:
    known: dict[str, Any] = {"min": 1, "max": 2, "state": State.RUNNING, "why": WHY, "reason": WHY["text"]}
    return JobRecord("jann", "ann", ("python", "train.py"), submitted=0.0, **(known | fields))


@pytest.mark.parametrize(
    "state, wanted, text, change",
    [
        (State.PAUSED, Wanted.PAUSE, "is paused: because", "It goes on after: edt resume jann"),
        (State.QUEUED, Wanted.STOP, "is queued and is going to be stopped", ""),
        (State.STOPPED, Wanted.STOP, "has stopped: because", ""),
    ],
)
def test_where_the_allocator_does_not_decide_its_last_reason_is_not_told(
    state: State, wanted: Wanted, text: str, change: str
) -> None:
    found = explain(record(state=state, wanted=wanted, reason="because"))
    assert (found["text"], found["change"]) == (f"jann {text}", change)
    assert found["lines"] == [line for line in (f"jann {text}", change) if line]
    assert (found["binding"], found["path"], found["share"]) == (None, [], None)


def test_new_bounds_of_a_job_that_would_lose_its_work_are_not_had_by_a_pause_unasked() -> None:
    found = explain(record(bounds=(2, 2)))
    assert "edt pause --force jann" in found["change"]
    assert "--force" not in explain(record(bounds=(2, 2), restartable=True))["change"]


def test_a_job_whose_files_cannot_be_read_says_so_whatever_is_wanted() -> None:
    trouble = "its files cannot be read: Input/output error"
    for wanted in Wanted:
        found = explain(record(wanted=wanted, trouble=trouble))
        assert found["text"] == f"jann is running and is left as it is until they can be read: {trouble}"


HOSTS = [HostRecord("h1", ("0",)), HostRecord("h2", ("0",), is_up=False, lost="it cannot be reached: x")]


@pytest.mark.parametrize(
    "known, more, without, told",
    [
        (
            {"size": 1},
            {"waiting": "waiting for 2 more nodes"},
            {"size": 2},
            "The pool is waiting for 2 more .*",
        ),
        (
            {"size": 1},
            {"hosts": HOSTS},
            {"size": 2},
            r"h2 is down since [0-9:]{8}: it cannot be reached: x\.",
        ),
        (
            {"unreachable": (("h2", 0.0, "nothing has come from h2 for 3 s"),)},
            {},
            {"state": State.QUEUED},
            r"It cannot reach h2 since [0-9:]{8}: nothing has come from h2 for 3 s\.",
        ),
        (
            {"suspended": (("node1", "3", 1000.0),)},
            {},
            {"state": State.STARTING},
            "It has no worker on node1:3, where the last one failed;.*",
        ),
    ],
    ids=["the pool waits", "a host is down", "a host is not reached", "a device is suspended"],
)
def test_what_keeps_a_job_small_is_told_of_jobs_that_it_concerns(
    known: dict[str, Any], more: dict[str, Any], without: dict[str, Any], told: str
) -> None:
    lines, others = (explain(record(**fields), **more)["lines"] for fields in (known, known | without))
    assert re.fullmatch(told, lines[-1])
    assert lines[-1] not in others
