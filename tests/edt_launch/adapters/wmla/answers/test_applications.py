import json
from dataclasses import replace

from edt_launch.adapters.wmla.answers import applications
from edt_launch.adapters.wmla.answers.consumers import Consumers
from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.identity import number_of
from edt_launch.adapters.wmla.running.layout import executor_id
from edt_launch.cluster.nvidia import Load
from edt_launch.core.history.event_codec import write
from edt_launch.core.history.events import Launched, Progress, Released, Started
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.records import ExecRecord, JobRecord
from edt_launch.service.jobs.states import State
from world import World


def started(worker: int) -> Started:
    return Started(worker, "h", worker, None, worker)


def execution(world: World, framework: Framework = Framework.ELASTIC) -> Execution:
    job = JobRecord(
        "jaaaaaaaa", "ann", ("main.py",), 1, 4, 10.0, framework=framework, size=2, started=40.0, priority=10,
        state=State.RUNNING, held=(("localhost", ("0", "3")),),
    )  # fmt: skip
    names = ExecRecord(1, "ann-1-2", "driver-1", "app-1", "", "dli", job.id)
    return Execution(job, names, JobDir(world.settings.paths.jobs / job.id))


def test_executors_that_were_given_back_have_finished(world: World) -> None:
    job = execution(world)
    for number in (1, 2, 3, 4):
        job.result.printed(executor_id(job.names.id, number), "stdout").mkdir(parents=True)
    assert states(job) == ["RUNNING"] * 4
    told = [
        *(Launched(), started(0), started(1)),
        *(Launched(), started(1), started(2)),
        *(Progress(1, None, 2), Released(2, "h", 0, None)),
    ]
    job.result.events.write_text("".join(json.dumps(write(event)) + "\n" for event in told))
    assert states(job) == ["FINISHED", "RUNNING", "FINISHED", "RUNNING"]
    assert executors(job) == [2, 4]
    ended = replace(job, job=replace(job.job, state=State.STOPPED))
    assert states(ended) == ["KILLED"] * 4
    assert executors(ended) == [1, 2, 3, 4]
    told = [applications.engine(one, Consumers.of([])) for one in (job, ended)]
    assert [(one["task12n_num"], one["used_gpu"]) for one in told] == [(2, 2), (4, 4)]


def states(job: Execution) -> list[str]:
    return [task["state"] for task in applications.modern(job)["task12n"]]


def executors(job: Execution) -> list[int | None]:
    told = applications.classic(job, Load(0, 0.0), 0.0, "http://edt")["executors"]
    return [number_of(one["id"]) for one in told]
