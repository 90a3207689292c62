"""Jobs as applications: as Conductor tells them, as the scheduler of 2.x does, and as its engine does."""

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.answers import files
from edt_launch.adapters.wmla.answers.consumers import Consumers
from edt_launch.adapters.wmla.answers.views import FINISHED, Execution, Json, moment, state_of
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.submission.catalogue import asked_priority
from edt_launch.cluster.nvidia import Load
from edt_launch.service.jobs.records import JobRecord


def classic(execution: Execution, load: Load, now: float, url: str) -> Json:
    """An application in the manner of 1.2.x; `load` is that of its GPUs, `url` the service's.

    Executors that a job which goes on has given back are not there any more.
    """
    job, names, state = execution.job, execution.names, state_of(execution.job)
    gone = _given_back(execution)
    return {
        "sparkinstancegroupid": identity.group_id(execution.group),
        "sparkinstancegroupname": execution.group,
        "applicationid": names.app,
        "applicationname": execution.app_name,
        "type": "BATCH",
        "state": state,
        "username": job.owner,
        "masterUrl": url,
        "submittedtime": moment(job.submitted),
        "endtime": moment(job.ended),
        "apprunduration": minutes(job, now),
        "slots": job.size,
        "demandslots": job.max,
        "gpuslots": job.size,
        "gpumemused": {"total": load.memory},
        "gpudevutil": {"total": load.utilization},
        "hosts": [host for host, _ in job.held],
        "driver": {"id": names.driver, "state": state},
        "executors": [
            {"id": name} for name in files.executors(execution) if identity.number_of(name) not in gone
        ],
    }


def summary(execution: Execution) -> Json:
    """An application in the manner of 2.x without its processes: what the database knows."""
    job, names = execution.job, execution.names
    return {
        "id": names.id,
        "applicationid": names.id,
        "name": execution.app_name,
        "applicationname": execution.app_name,
        "driverid": names.driver,
        "sigId": identity.group_id(execution.group),
        "submit_user": job.owner,
        "state": state_of(job),
        "submit_time": int(job.submitted),
        "start_time": int(job.started or 0),
        "end_time": int(job.ended or 0),
    }


def modern(execution: Execution) -> Json:
    """An application in the manner of 2.x: its driver is task 0, its executors tasks 1 to n.

    An executor that a job which goes on has given back has finished.
    """
    job, state = execution.job, state_of(execution.job)
    gone = _given_back(execution)
    driver = files.driver(execution)
    return {
        **summary(execution),
        "driverid": driver,
        "task0": [{"id": driver, "task": 0, "state": state}] if job.framework == Framework.ELASTIC else [],
        "task12n": [
            {"id": name, "task": number, "state": FINISHED if number in gone else state}
            for name in files.executors(execution)
            for number in [identity.number_of(name)]
        ],
    }


def _given_back(execution: Execution) -> frozenset[int]:
    """Which executors a job that goes on has given back, counted from 1."""
    return frozenset() if execution.job.has_ended else files.released(execution)


def engine(execution: Execution, consumers: Consumers) -> Json:
    """An application as the scheduler's engine tells it: with its resources; times are unix seconds.

    One that has ended is shown with all executors that it had.

    Clients put the submitter behind the consumer, and look for the node of that path in the tree.
    """
    job = execution.job
    number = len(files.executors(execution)) if job.has_ended else job.size
    consumer = consumers.above(job.owner)
    return {
        "id": execution.names.id,
        "name": execution.app_name,
        "consumer": consumer,
        "submit_user": job.owner,
        "tag": f"{consumer}/{job.owner}",
        "priority": asked_priority(job.priority),
        "type": "ELASTIC" if job.framework == Framework.ELASTIC else "PARALLEL",
        "state": state_of(job),
        "task12n_num": number,
        "task0_resreq": "ngpus=0,mem=0,ncpus=1",
        "task12n_resreq": "ngpus=1,mem=0,ncpus=1",
        "used_gpu": number,
        "used_mem": 0,
        "used_cpu": number,
        "submit_time": int(job.submitted),
        "start_time": int(job.started or 0),
        "end_time": int(job.ended or 0),
        "is_packing": False,
        "pack_id": "",
        "kernels": "",
    }


def minutes(job: JobRecord, now: float) -> float:
    """For how long a job has run, from its first start on."""
    if job.started is None:
        return 0.0
    return round(max(0.0, (job.ended or now) - job.started) / 60, 4)
