"""How jobs look to WMLA's clients: flat objects, which notebooks make tables of."""

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.answers.states import state_of
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.adapters.wmla.submission.catalogue import app_name
from edt_launch.service.database.records import ExecRecord, JobRecord
from edt_launch.service.home import JobDir

Json = dict[str, Any]

NO_GROUP = "edt"
"""The instance group of jobs that were submitted without one."""


@dataclass(frozen=True)
class Execution:
    """A job and its names.

    Attributes:
        job: the job.
        names: what WMLA's clients call it.
        files: its folder.
    """

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


def unnamed(job: JobRecord) -> ExecRecord:
    """The names of a job that no client of WMLA has submitted."""
    return ExecRecord(0, job.id, job.id, job.id, shlex.join(job.command), job=job.id)


def classic(execution: Execution, url: str, account: str) -> Json:
    """An exec in the manner of 1.2.x.

    Args:
        execution: the job.
        url: of the service.
        account: who runs the service, and so its jobs.
    """
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
    """An exec in the manner of 2.x; arguments as for `classic`."""
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
        "appName": job.name or app_name(job.framework),
        "createTime": datetime.fromtimestamp(int(job.submitted), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "elastic": job.min < job.max if framework is None else framework.is_elastic,
        "nameSpace": "edt",
        "numWorker": job.max,
        "framework": job.framework or "",
    }
