"""Runs a script for WMLA, as its driver or its only part: ``python -m edt_hvd.wmla.script SCRIPT ARGS``.

To the script everything is as under ``python SCRIPT ARGS`` with its whole path, but that `edt_hvd` has been
imported, which programs that begin with ``import torchvision`` need beside a torch without CUDA, and that the
failing import of a framework that EDT does not train ends with a word about it.
"""

import os
import runpy
import sys
import time
from pathlib import Path
from types import TracebackType

from edt_hvd.wmla.handing import finding, modules, surroundings
from edt_hvd.wmla.program import FOREIGN, REFUSAL

GLOO_PAUSE = 0.1
"""Seconds that the process of a gang lives on after its script: threads of its process group may have tensors
of the last collective operation still, and Python's end before they let go of them aborts the process."""


def main() -> None:
    """Run the script that the command line names."""
    del sys.argv[0]
    path = os.path.abspath(sys.argv[0])
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    modules.Watch(_model_dir(sys.path[0])).install()
    surroundings.note()

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show an uncaught error without our frames."""
        while trace is not None and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        frame = trace
        while frame is not None:
            while frame.tb_next is not None and _is_of_importing(frame.tb_next):
                frame.tb_next = frame.tb_next.tb_next
            frame = frame.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
        if isinstance(error, ImportError) and str(error.name).partition(".")[0] in FOREIGN:
            print(REFUSAL, file=sys.stderr)

    sys.excepthook = show
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        if "MASTER_ADDR" in os.environ:
            time.sleep(GLOO_PAUSE)


def _model_dir(folder: str) -> str:
    """The folder of a script's modules: the working directory if the script's own is beneath it."""
    here = os.getcwd()
    return here if Path(folder).is_relative_to(here) else folder


def _is_of_importing(trace: TracebackType) -> bool:
    """Whether a frame is one that Python leaves out where a module is imported, or takes its place."""
    name = trace.tb_frame.f_code.co_filename
    return name == finding.__file__ or name.startswith("<frozen importlib")


if __name__ == "__main__":
    main()
