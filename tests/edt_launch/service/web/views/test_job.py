from typing import Any

import pytest

from edt_launch.service.api import views
from edt_launch.service.database.records import JobRecord
from edt_launch.service.foreseen import sentences
from edt_launch.service.states import State, Wanted
from edt_launch.service.web.views.job import actions, effect, job_view, question


def record(**fields: Any) -> JobRecord:
    return JobRecord("jaaaaaaaa", "ann", ("python", "train me.py"), 1, 4, 5.0, **fields)


def job(**fields: Any) -> dict[str, Any]:
    return views.job(record(**fields))


@pytest.mark.parametrize(
    "fields, offered",
    [
        ({}, ("set", "pause", "stop", "clone")),
        ({"wanted": Wanted.PAUSE, "state": State.PAUSED}, ("set", "resume", "stop", "clone")),
        ({"wanted": Wanted.STOP, "state": State.RUNNING}, ("clone",)),
        ({"state": State.FAILED}, ("clone", "delete")),
    ],
)
def test_what_can_be_done_depends_on_its_state(fields: dict[str, Any], offered: tuple[str, ...]) -> None:
    assert tuple(actions(job(**fields))) == offered


def test_questions_say_what_happens_to_its_devices() -> None:
    assert effect(job(size=1), "stop").endswith("Its 1 device is free then.")
    assert effect(job(size=3), "pause").endswith("Its 3 devices are free then.")
    assert "device" not in effect(job(), "pause")
    assert "waits for 1 device at least" in effect(job(), "resume")
    assert question(job(), "stop").fields == ()


def test_a_form_keeps_what_it_was_given() -> None:
    fields = {field.name: field.value for field in question(job(), "set").fields}
    assert fields == {"min": "1", "max": "4", "priority": "0", "weight": "1", "name": "train-me"}
    given = fields | {"max": "x"}
    assert {
        field.name: field.value for field in question(job(), "set", given=given, error="no").fields
    } == given


def test_others_see_one_tab_and_no_actions() -> None:
    view = job_view(views.hidden(job(), record()), "size", None, is_own=False)
    assert ([tab.name for tab in view.tabs], view.actions) == (["Why this size"], ())
    own = job_view(job(), "logs", None, is_own=True)
    assert [tab.name for tab in own.tabs if tab.is_chosen] == ["Logs"]
    assert len(own.tabs) == 6


def test_what_is_foreseen_is_told_in_sentences() -> None:
    one = {"job": "jaaaaaaaa", "name": "", "owner": "bob", "from": 1, "to": 3}
    assert sentences([one]) == ["jaaaaaaaa of bob goes from 1 to 3."]
    assert sentences([one] * 10)[-1] == "So do 2 more."
    assert sentences([]) == ["No other job would change now."]
    assert sentences(None) == []
