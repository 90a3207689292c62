from typing import Any

import pytest

from edt_launch.service.api import views
from edt_launch.service.database.records import JobRecord
from edt_launch.service.explanation import explain
from edt_launch.service.states import State, Wanted
from edt_launch.service.web.views.job import Written, act_view, actions, effect, happened, job_view


def record(**fields: Any) -> JobRecord:
    return JobRecord("jaaaaaaaa", "ann", ("python", "train me.py"), 1, 4, 5.0, **fields)


def job(**fields: Any) -> dict[str, Any]:
    return views.job(record(**fields))


@pytest.mark.parametrize(
    "fields, offered",
    [
        ({}, ("set", "pause", "stop")),
        ({"wanted": Wanted.PAUSE, "state": State.PAUSED}, ("set", "resume", "stop")),
        ({"wanted": Wanted.STOP, "state": State.RUNNING}, ()),
        ({"state": State.FAILED}, ()),
    ],
)
def test_what_can_be_done_depends_on_its_state(fields: dict[str, Any], offered: tuple[str, ...]) -> None:
    assert tuple(actions(job(**fields))) == offered


def test_questions_say_what_happens_to_its_devices() -> None:
    assert effect(job(size=1), "stop").endswith("Its 1 device goes to other jobs.")
    assert effect(job(size=3), "pause").endswith("Its 3 devices go to other jobs.")
    assert "device" not in effect(job(), "pause")
    assert "waits for 1 devices" in effect(job(), "resume")
    assert act_view(job(), "stop").fields == ()


def test_a_form_keeps_what_it_was_given() -> None:
    fields = {field.name: field.value for field in act_view(job(), "set").fields}
    assert fields == {"min": "1", "max": "4", "priority": "0", "weight": "1", "name": ""}
    given = fields | {"max": "x"}
    assert {field.name: field.value for field in act_view(job(), "set", given, "no").fields} == given


def test_others_see_no_logs_and_no_actions() -> None:
    shown = views.hidden(job())
    view = job_view(shown, explain(record()), None)
    assert (view.command, view.log, view.events, view.actions) == (None, None, None, ())


def test_the_owner_sees_all() -> None:
    view = job_view(job(), explain(record()), Written((), ["[0] hello"], 3))
    assert view.command == "python 'train me.py'"
    assert view.log_address == "/api/v1/jobs/jaaaaaaaa/logs?rank=3&tail=200"
    assert view.all_of_log == "/api/v1/jobs/jaaaaaaaa/logs?rank=3"
    assert view.ranks == range(4)


def test_events_are_told_in_words_and_what_is_none_is_left_out() -> None:
    lines = [
        b'{"event": "world", "time": 1.0, "generation": 1, "size": 2}',
        b"nonsense",
        b'{"event": "progress", "time": 2.0}',
        b'{"event": "allocation_rejected", "time": 3.0, "reason": "half a line"}',
    ]
    assert [(event.time, event.text) for event in happened(lines, 9)] == [
        (3.0, "allocation not followed: half a line"),
        (1.0, "2 workers training"),
    ]
    assert len(happened(lines, 1)) == 1
