"""How jobs look to WMLA's clients: flat objects, which notebooks make tables of.

Clients poll while a state is `SUBMITTED`, `PENDING_CRD_SCHEDULER` or `RUNNING`; any other one ends that.
"""

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.adapters.wmla.submission.catalogue import app_name
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.records import ExecRecord, JobRecord
from edt_launch.service.jobs.states import State

Json = dict[str, Any]

NO_GROUP = "edt"
"""The instance group of jobs that were submitted without one."""

SUBMITTED, PENDING, RUNNING = "SUBMITTED", "PENDING_CRD_SCHEDULER", "RUNNING"
FINISHED, ERROR, KILLED = "FINISHED", "ERROR", "KILLED"

_STATES = {
    State.QUEUED: PENDING,
    State.STARTING: RUNNING,
    State.RUNNING: RUNNING,
    State.PAUSING: RUNNING,
    State.PAUSED: PENDING,
    State.SUSPENDING: RUNNING,
    State.STOPPING: RUNNING,
    State.SUCCEEDED: FINISHED,
    State.FAILED: ERROR,
    State.STOPPED: KILLED,
}


def state_of(job: JobRecord) -> str:
    """A job's state; it is `SUBMITTED` until it has been decided upon for the first time."""
    if job.state is State.QUEUED and job.why is None and job.started is None:
        return SUBMITTED
    return _STATES[job.state]


def behind(names: Collection[str]) -> frozenset[State]:
    """The jobs' own states that may be called one of `names`."""
    own = {PENDING if name == SUBMITTED else name for name in names}
    return frozenset(state for state, called in _STATES.items() if called in own)


@dataclass(frozen=True)
class Execution:
    """A job, what WMLA's clients call it, and its folder."""

    job: JobRecord
    names: ExecRecord
    files: JobDir

    @property
    def result(self) -> ResultDir:
        """RESULT_DIR."""
        return ResultDir(self.files.root)

    @property
    def group(self) -> str:
        """Its instance group."""
        return NO_GROUP if self.names.group is None else self.names.group

    @property
    def app_name(self) -> str:
        """The name of its application."""
        return self.job.name or app_name(self.job.framework)


def unnamed(job: JobRecord) -> ExecRecord:
    """The names of a job that no client of WMLA has submitted."""
    return ExecRecord(0, job.id, job.id, job.id, shlex.join(job.command), job=job.id)


def classic(execution: Execution, url: str, account: str) -> Json:
    """An exec in the manner of 1.2.x; `url` is the service's, and `account` runs it and its jobs."""
    job, names = execution.job, execution.names
    return {
        "userName": job.owner,
        "sigName": execution.group,
        "sigId": identity.group_id(execution.group),
        "id": names.id,
        "args": names.args,
        "submissionId": names.driver,
        "appId": names.app,
        "masterURL": url,
        "state": state_of(job),
        "executionUserName": account,
    }


def modern(execution: Execution, url: str, account: str) -> Json:
    """An exec in the manner of 2.x."""
    job, names = execution.job, execution.names
    framework = Framework.of(job.framework)
    return {
        "id": names.id,
        "args": names.args,
        "submissionId": names.id,
        "creator": job.owner,
        "state": state_of(job),
        "appId": names.id,
        "schedulerUrl": url,
        "modelFileOwnerName": account,
        "workDir": str(execution.files.code / job.directory),
        "appName": execution.app_name,
        "createTime": moment(job.submitted),
        "elastic": job.min < job.max if framework is None else framework.is_elastic,
        "nameSpace": "edt",
        "numWorker": job.max,
        "framework": job.framework or "",
    }


def moment(time: float | None) -> str | None:
    """A time as text."""
    return None if time is None else datetime.fromtimestamp(int(time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
