"""Which part of a WMLA job this process has.

======  ===========================  ===================================================================
role    started by                   `FabricModel.train` there
======  ===========================  ===================================================================
driver  ``edt-launch --wmla``        has executors train, and calls the logger
alone   the kernel of a notebook     starts edt-launch, and is the driver meanwhile
alone   anything else: python, ...   trains in this process, with others if any
======  ===========================  ===================================================================

``EDT_WMLA_ROLE`` says which in the environment, also ``executor`` in those that train for a driver: they run
no script. Set to ``alone`` before a kernel starts, it has that train by itself.
"""

import os
from collections.abc import Mapping
from enum import StrEnum

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import Start

VARIABLE = "EDT_WMLA_ROLE"


class Role(StrEnum):
    """The part of a process in a job."""

    ALONE = "alone"
    DRIVER = "driver"
    EXECUTOR = "executor"


_start: Start | None = None


def role(environ: Mapping[str, str] = os.environ) -> Role:
    """This process's role.

    Raises:
        WmlaError: the environment names none that there is.
    """
    try:
        return Role(environ.get(VARIABLE, Role.ALONE))
    except ValueError:
        names = ", ".join(Role)
        raise WmlaError(f"{VARIABLE}={environ[VARIABLE]!r} is none of {names}; unset it") from None


def begin(start: Start) -> None:
    """Let this process be the driver of a job whose script was started like that."""
    global _start
    _start = start
    os.environ[VARIABLE] = Role.DRIVER


def start() -> Start:
    """How the script of this driver was started.

    Raises:
        WmlaError: this process is no driver.
    """
    if _start is None:
        raise WmlaError(
            f"this process has {VARIABLE}={os.environ[VARIABLE]} from another one, and train() is for the "
            f"script itself; unset {VARIABLE} in processes that train by themselves"
        )
    return _start
