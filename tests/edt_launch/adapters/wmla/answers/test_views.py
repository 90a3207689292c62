from dataclasses import replace

from edt_launch.adapters.wmla.answers import views
from edt_launch.adapters.wmla.answers import views as states
from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.service.database.records import ExecRecord, JobRecord
from edt_launch.service.home import JobDir
from edt_launch.service.states import State
from world import World

OLD = [
    "userName",
    "sigName",
    "sigId",
    "id",
    "args",
    "submissionId",
    "appId",
    "masterURL",
    "state",
    "executionUserName",
]
NEW = [
    "id",
    "args",
    "submissionId",
    "creator",
    "state",
    "appId",
    "schedulerUrl",
    "modelFileOwnerName",
    "workDir",
    "appName",
    "createTime",
    "elastic",
    "nameSpace",
    "numWorker",
    "framework",
]


def test_objects_are_flat_and_exactly_as_clients_know_them(world: World) -> None:
    framework = Framework.ELASTIC
    job = JobRecord("jaaaaaaaa", "ann", ("main.py", "a b"), 1, 2, 1e9, directory="m", framework=framework)
    named = ExecRecord(1, "wmla-1", "driver-1", "wmla-1", "--exec-start edtPyTorch ", "dli", job.id)
    for names in (named, views.unnamed(job)):
        found = Execution(job, names, JobDir(world.settings.paths.jobs / job.id))
        old, new = views.classic(found, "http://edt", "edt"), views.modern(found, "http://edt", "edt")
        assert list(old) == OLD
        assert list(new) == NEW
        assert all(isinstance(value, str | int | bool) for value in (*old.values(), *new.values()))
    assert old["sigName"] == "edt"
    assert old["args"] == "main.py 'a b'"
    assert new["createTime"] == "2001-09-09T01:46:40Z"
    assert new["workDir"].endswith("/jobs/jaaaaaaaa/_submitted_code/m")


JOB = JobRecord("jaaaaaaaa", "ann", ("main.py",), 1, 2, 0.0)


def test_clients_know_every_state() -> None:
    for state in State:
        told = states.state_of(replace(JOB, state=state))
        assert told in ("SUBMITTED", "RUNNING", "PENDING_CRD_SCHEDULER", "FINISHED", "ERROR", "KILLED")
        assert state in states.behind([told])
    assert states.behind(["SUBMITTED", "NEW"]) == states.behind(["PENDING_CRD_SCHEDULER"])


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
    assert states.behind(["NEW"]) == frozenset()
