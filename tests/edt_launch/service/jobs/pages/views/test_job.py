from typing import Any

import pytest

from edt_launch.service.jobs import answers
from edt_launch.service.jobs.pages.views.job import actions
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.jobs.states import State, Wanted


def record(**fields: Any) -> JobRecord:
    return JobRecord("jaaaaaaaa", "ann", ("python", "train me.py"), 1, 4, 5.0, **fields)


def job(**fields: Any) -> Job:
    return answers.job(record(**fields))


@pytest.mark.parametrize(
    "fields, offered",
    [
        ({}, ("set", "pause", "stop", "clone")),
        ({"wanted": Wanted.PAUSE, "state": State.PAUSED}, ("set", "resume", "stop", "clone")),
        ({"wanted": Wanted.STOP, "state": State.RUNNING}, ("clone",)),
        ({"state": State.FAILED}, ("set", "clone", "delete")),
    ],
)
def test_what_can_be_done_depends_on_its_state(fields: dict[str, Any], offered: tuple[str, ...]) -> None:
    assert tuple(actions(job(**fields))) == offered
