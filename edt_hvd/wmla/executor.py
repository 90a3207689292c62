"""The program of an executor: ``python -m edt_hvd.wmla.executor SCRIPT FOLDER DIGEST``; edt-launch starts it.

It trains what the driver has put into the folder of a training. Of the script it needs nothing but the name:
the warm server imports what the script imports.
"""

import os
import sys
import traceback
import types
from pathlib import Path

import edt_hvd
from edt_hvd.wmla import handing, process
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import TrainingDir
from edt_hvd.wmla.result_file import ResultWriter, append
from edt_hvd.wmla.results import Failed
from edt_hvd.wmla.training.engine import Engine


def main() -> None:
    """Take part in the training that the command line names."""
    if len(sys.argv) != 4:
        sys.exit("usage: python -m edt_hvd.wmla.executor SCRIPT FOLDER DIGEST")
    _, script, folder_name, digest = sys.argv
    folder = TrainingDir(Path(folder_name))
    os.environ[process.VARIABLE] = process.Role.EXECUTOR
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    main_module.__file__ = script
    try:
        edt_hvd.init()
        program, config = handing.read(folder, digest)
        Engine(program, config, ResultWriter(folder.results), _print, folder.outcome).run()
    except Exception as error:
        append(folder.results, Failed(_text_of(error)))
        if isinstance(error, WmlaError):
            sys.exit(f"{type(error).__name__}: {error}")
        raise


def _text_of(error: Exception) -> str:
    """The error in one line, with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
    return f"{at}{type(error).__name__}: {error}"[:2000]


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
