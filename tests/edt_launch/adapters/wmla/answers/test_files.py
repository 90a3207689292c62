import json

import pytest

from edt_launch.adapters.wmla.answers import files
from edt_launch.adapters.wmla.answers.views import Execution, unnamed
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import executor_id
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.records import ExecRecord, JobRecord
from no_files import KINDS, put
from world import World

DRIVER = "driver-20200219034500-0001-x"


def execution(world: World, framework: Framework | None, *, is_named: bool = True) -> Execution:
    job = JobRecord("jaaaaaaaa", "ann", ("main.py",), 1, 2, 0.0, framework=framework, size=2)
    names = ExecRecord(7, "wmla-7", DRIVER, "wmla-7", "", job=job.id) if is_named else unnamed(job)
    found = Execution(job, names, JobDir(world.settings.paths.jobs / job.id))
    for folder in found.result.folders:
        folder.mkdir(parents=True)
    return found


def test_an_elastic_jobs_log_is_what_its_logger_wrote(world: World) -> None:
    found = execution(world, Framework.ELASTIC)
    assert files.training_log(found) == []
    folders = [found.result.log_dir(DRIVER, host) for host in ("node1", "node2")]
    for folder in (*folders, found.result.log_dir(executor_id("wmla-7", 1), "node1")):
        folder.mkdir()
    assert files.training_log(found) == [folder / "stdout" for folder in folders]
    assert files.main_output(found, "stderr") == found.result.printed(DRIVER, "stderr")


def test_a_job_that_another_client_has_submitted_names_itself(world: World) -> None:
    found = execution(world, Framework.ELASTIC, is_named=False)
    assert files.driver(found) == "jaaaaaaaa"
    found.result.identity.write_text(json.dumps({"driver": DRIVER, "exec_id": "root-1-2"}))
    assert files.driver(found) == DRIVER
    assert files.executor_output(found, 1, "stdout").parent.name == executor_id("root-1-2", 1)
    found.result.identity.write_text(json.dumps({"driver": "../../etc"}))
    assert files.driver(found) == "jaaaaaaaa"


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_job_puts_in_place_of_its_files_costs_it_its_own_names_alone(
    world: World, kind: str
) -> None:
    found = execution(world, Framework.ELASTIC, is_named=False)
    put(kind, found.result.identity)
    put(kind, found.result.events)
    found.result.processes.rmdir()
    put(kind, found.result.processes)
    assert files.driver(found) == "jaaaaaaaa"
    assert files.released(found) == frozenset()
    assert kind == "link" or files.executors(found) == []
