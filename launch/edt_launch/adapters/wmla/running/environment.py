"""What the processes of a WMLA job find in their environment: pure functions from where things are."""

import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import ResultDir, driver_id

LAUNCHER_VARIABLE = "EDT_WMLA_LAUNCHER"
"""The descriptor of the driver's socket; for the driver alone."""

DRIVER_VARIABLE, USER_VARIABLE = "EDT_WMLA_DRIVER", "EDT_WMLA_SUBMIT_USER"
"""By which whoever starts a job says what its driver is called, and who has submitted it."""

MODULES = ("dli_utils", "fabric.zip")
"""Folders in FABRIC_HOME/libs of modules that every program may import."""

OF_A_PROCESS = (
    *("LOG_DIR", "SPARK_LOG_STDOUTSTDERR_DIR", "TASK_ID", "DLI_TASK_ID", "IS_TASK0"),
    *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"),
    *("WMLA_NWORKER", "WMLA_WORKER_NDEVICE"),
)
"""Variables that each process has its own value of, or none."""


def shared(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that all processes may have."""
    return {name: value for name, value in variables.items() if name not in OF_A_PROCESS}


@dataclass(frozen=True)
class Identity:
    """The names of a job: DLI_EXECID, APP_ID, the id of its driver, and who has submitted it."""

    exec_id: str
    app_id: str
    driver: str
    user: str

    @classmethod
    def new(cls, user: str, stamp: str, unique: uuid.UUID) -> "Identity":
        """The names of a job that `user` starts at `stamp`, as YYYYMMDDhhmmss."""
        exec_id = f"{user}-{stamp}-{unique.int % 10**9}"
        return cls(exec_id, exec_id, driver_id(stamp, unique), user)

    def known_as(self, inherited: Mapping[str, str], kept: Mapping[str, Any]) -> "Identity":
        """These names, but for those that the job is given in the environment, or has had before.

        `kept` is what `as_json` gave when it was started first; empty if it was not, or if that is lost.
        """
        exec_id = inherited.get("DLI_EXECID") or inherited.get("EDT_JOB_ID")
        given = {
            "exec_id": exec_id,
            "app_id": inherited.get("APP_ID") or exec_id,
            "driver": inherited.get(DRIVER_VARIABLE),
            "user": inherited.get(USER_VARIABLE),
        }
        known = {name: value or kept.get(name) for name, value in given.items()}
        return replace(self, **{name: value for name, value in known.items() if isinstance(value, str)})

    def as_json(self) -> dict[str, str]:
        """What `known_as` takes as `kept`."""
        return asdict(self)


@dataclass(frozen=True)
class JobLayout:
    """Where a WMLA job runs: RESULT_DIR, the folder of its program, DATA_DIR and FABRIC_HOME."""

    framework: Framework
    result: ResultDir
    work: Path
    data: Path
    fabric_home: Path


def of_job(
    inherited: Mapping[str, str], layout: JobLayout, identity: Identity, uid: int, gid: int
) -> dict[str, str]:
    """What all processes of a job get besides; names that the user may have given already keep their values.

    `inherited` is the environment of whoever starts it; `uid` and `gid` are who it runs as.
    """
    result, data, work = str(layout.result.root), str(layout.data), str(layout.work)
    above = str(layout.result.root.parent)
    trial = {"JOB_STATE_DIR": result} if "SUBID" in inherited else {}
    presets = {
        "DLI_CS_DATASTORE_META": "type=fs",
        "DLI_DATA_FS": data,
        "DLI_LOGGER_LEVEL": "info",
        "DLI_RESULT_FS": above,
        "DLI_SHARED_FS": above,
        "RESUME_WEIGHT_PATH": "",
    }
    return {
        **{name: inherited.get(name, value) for name, value in presets.items()},
        **trial,
        "APP_ID": identity.app_id,
        "CHECKPOINT_DIR": str(layout.result.checkpoint),
        "DATA_DIR": data,
        "DATA_PATH": data,
        "DLI_EXECID": identity.exec_id,
        "DLI_IS_ELASTIC": "true" if layout.framework.is_elastic else "false",
        "DLI_RUN_AS_GROUPID": str(gid),
        "DLI_RUN_AS_USERID": str(uid),
        "DLI_RUN_AS_USERNAME": identity.user,
        "DLI_SUBMIT_USERNAME": identity.user,
        "DLI_WORK_DIR": work,
        "DL_NFS_PATH": above,
        "EMETRICS_STREAMING": "false",  # metrics are written to files; nothing takes in a stream of them
        "EXEC_TYPE": "elastic" if layout.framework.is_elastic else "train",
        "FABRIC_HOME": str(layout.fabric_home),
        "FRAME_WORK": str(layout.framework),
        "IS_K8S": "false",
        "JOB_ID": identity.exec_id,
        "MODEL_FILE_LOCATION": work,
        "MODEL_PATH": work,
        "PS_PATH": work,
        "PYTHONPATH": _python_path(inherited, layout),
        "RESULT_DIR": result,
        "SAVED_MODEL_DIR": str(layout.result.model),
        "WMLA_TOP": str(layout.fabric_home.parent),
    }


def _python_path(inherited: Mapping[str, str], layout: JobLayout) -> str:
    """The platform's own, the user's, and last the submitted code."""
    ours, code = [str(layout.fabric_home / "libs" / name) for name in MODULES], str(layout.work)
    theirs = inherited.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([*ours, *(entry for entry in theirs if entry not in ("", *ours, code)), code])


def of_driver(result: ResultDir, identity: Identity, host: str, max_np: int) -> dict[str, str]:
    """What the driver gets besides: it has no device, but knows how many workers there may be."""
    return {
        **of_process(result.log_dir(identity.driver, host), 0),
        "CUDA_VISIBLE_DEVICES": "",
        "EDT_WMLA_MAX_WORKERS": str(max_np),
        "PYTHONUNBUFFERED": "1",
    }


def of_process(log_dir: Path, task: int) -> dict[str, str]:
    """What a process gets besides: the driver is task 0, the executors are tasks 1 to n."""
    return {
        "DLI_TASK_ID": str(task),
        "IS_TASK0": "true" if task == 0 else "false",
        "LOG_DIR": str(log_dir),
        "SPARK_LOG_STDOUTSTDERR_DIR": str(log_dir),
        "TASK_ID": str(task),
    }
