"""Runs a script for WMLA, as its driver or its only part: ``python -m edt_hvd.wmla.script SCRIPT ARGS``.

To the script everything is as under ``python SCRIPT ARGS`` with its whole path, but that `edt_hvd` has been
imported, and that the error of a program for a framework that EDT does not train says so.
"""

import os
import random
import runpy
import sys
import time
import zlib
from collections.abc import Sequence
from types import TracebackType

import numpy as np

from edt_hvd.wmla import launching
from edt_hvd.wmla.notebook import relay, remote
from edt_hvd.wmla.program import FOREIGN, REFUSAL

SHOWN = ("DLI_WORK_DIR", "DATA_DIR", "RESULT_DIR", "LOG_DIR", "SAVED_MODEL_DIR", "DLI_EXECID", "FABRIC_HOME")
"""Variables that a driver's output begins with: where everything is."""

GLOO_PAUSE = 0.1
"""Seconds that the process of a gang lives on after its script: threads of its process group may have tensors
of the last collective operation still, and Python's end before they let go of them aborts the process."""


def main() -> None:
    """Run the script that the command line names."""
    path, arguments = os.path.abspath(sys.argv[1]), tuple(sys.argv[2:])
    if kernel := os.environ.get(relay.VARIABLE):
        remote.drive(*arguments) if kernel == relay.POOL else relay.relay()
        return
    if launching.VARIABLE in os.environ:
        launching.driver_process = os.getpid()
        job = os.environ["DLI_EXECID"]
        random.seed(
            job
        )  # a job that goes on after a pause draws the same numbers; torch's are always the same
        np.random.seed(zlib.crc32(job.encode()))
        for name in SHOWN:
            print(f"{name}={os.environ.get(name, '')}", flush=True)
    try:
        run(path, arguments)
    finally:
        if "MASTER_ADDR" in os.environ:
            time.sleep(GLOO_PAUSE)


def run(path: str, arguments: Sequence[str]) -> None:
    """Run a script as `__main__`; returns or raises as it does.

    Args:
        path: its absolute path.
        arguments: of its command line.
    """
    sys.argv[:] = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(path))

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show an uncaught error without our frames."""
        while trace is not None and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
        if isinstance(error, ImportError) and str(error.name).partition(".")[0] in FOREIGN:
            print(REFUSAL, file=sys.stderr)

    sys.excepthook = show
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
