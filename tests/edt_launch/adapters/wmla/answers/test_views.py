from dataclasses import replace

from edt_launch.adapters.wmla.answers import views
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

JOB = JobRecord("jaaaaaaaa", "ann", ("main.py",), 1, 2, 0.0)


def test_clients_know_every_state() -> None:
    for state in State:
        told = views.state_of(replace(JOB, state=state))
        assert told in ("SUBMITTED", "RUNNING", "PENDING_CRD_SCHEDULER", "FINISHED", "ERROR", "KILLED")
        assert state in views.behind([told])
        is_polled = told in ("SUBMITTED", "PENDING_CRD_SCHEDULER", "RUNNING")
        assert is_polled is not replace(JOB, state=state).has_ended
    assert views.behind(["NEW"]) == frozenset()
