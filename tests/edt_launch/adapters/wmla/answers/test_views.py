from dataclasses import replace

from edt_launch.adapters.wmla.answers import views
from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.service.database.records import ExecRecord, JobRecord
from edt_launch.service.home import JobDir
from edt_launch.service.states import State
from world import World


def test_objects_are_flat_and_exactly_as_clients_know_them(world: World) -> None:
    framework = Framework.ELASTIC
    job = JobRecord("jaaaaaaaa", "ann", ("main.py", "a b"), 1, 2, 1e9, directory="m", framework=framework)
    named = ExecRecord(1, "wmla-1", "driver-1", "wmla-1", "--exec-start edtPyTorch ", "dli", job.id)
    for names in (named, views.unnamed(job)):
        found = Execution(job, names, JobDir(world.settings.paths.jobs / job.id))
        old, new = views.classic(found, "http://edt", "edt"), views.modern(found, "http://edt", "edt")
        assert {"userName", "sigId", "id", "args", "submissionId", "appId", "state"} < old.keys()
        assert {"id", "args", "creator", "state", "appId", "elastic", "numWorker", "framework"} < new.keys()
        assert all(isinstance(value, str | int | bool) for value in (*old.values(), *new.values()))
    assert old["sigName"] == "edt"
    assert old["args"] == "main.py 'a b'"
    assert new["createTime"] == "2001-09-09T01:46:40Z"
    assert new["workDir"].endswith("/jobs/jaaaaaaaa/_submitted_code/m")


JOB = JobRecord("jaaaaaaaa", "ann", ("main.py",), 1, 2, 0.0)


def test_clients_know_every_state() -> None:
    for state in State:
        told = views.state_of(replace(JOB, state=state))
        assert told in ("SUBMITTED", "RUNNING", "PENDING_CRD_SCHEDULER", "FINISHED", "ERROR", "KILLED")
        assert state in views.behind([told])
        is_polled = told in ("SUBMITTED", "PENDING_CRD_SCHEDULER", "RUNNING")
        assert is_polled is not replace(JOB, state=state).has_ended
    assert views.behind(["NEW"]) == frozenset()
