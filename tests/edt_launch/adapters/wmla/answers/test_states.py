from dataclasses import replace

from edt_launch.adapters.wmla.answers import views as states
from edt_launch.service.database.records import JobRecord
from edt_launch.service.states import State

JOB = JobRecord("jaaaaaaaa", "ann", ("main.py",), 1, 2, 0.0)


def test_clients_know_every_state() -> None:
    for state in State:
        told = states.state_of(replace(JOB, state=state))
        assert told in states.ENGINE_STATES
        assert state in states.behind(told)


def test_what_waits_was_submitted_until_it_has_been_decided_upon() -> None:
    assert states.state_of(JOB) == "SUBMITTED"
    assert states.state_of(replace(JOB, why={"text": "waits"})) == "PENDING_CRD_SCHEDULER"
    assert states.state_of(replace(JOB, started=1.0)) == "PENDING_CRD_SCHEDULER"


def test_clients_poll_as_long_as_a_job_lives() -> None:
    polled = {"SUBMITTED", "PENDING_CRD_SCHEDULER", "RUNNING"}
    for state in State:
        job = replace(JOB, state=state)
        assert (states.state_of(job) in polled) is not job.has_ended


def test_nothing_is_behind_an_unknown_name() -> None:
    assert states.behind("NEW") == frozenset()
