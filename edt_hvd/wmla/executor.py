"""The program of an executor: ``python -m edt_hvd.wmla.executor SCRIPT FOLDER DIGEST``; edt-launch starts it.

It trains what the driver has put into the folder of a training. Of the script it needs nothing but the name:
the warm server imports what the script imports.
"""

import sys
import traceback
import types
from collections import deque
from collections.abc import Callable
from pathlib import Path

import edt_hvd
from edt_hvd.progress import program_messages
from edt_hvd.wmla import program_file
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import TrainingDir
from edt_hvd.wmla.results import Begun, Deduplicator, Failed, Message, Result, encode
from edt_hvd.wmla.training.engine import Engine

REPEATED = 64
"""Results that a new coordinator sends once more: the one before may have been lost with its host."""


def main() -> None:
    """Take part in the training that the command line names."""
    if len(sys.argv) != 4:
        sys.exit("usage: python -m edt_hvd.wmla.executor SCRIPT FOLDER DIGEST")
    _, script, folder_name, digest = sys.argv
    folder = TrainingDir(Path(folder_name))
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    main_module.__file__ = script
    try:
        edt_hvd.init()
        program, config = program_file.read(folder, digest)
        Engine(program, config, Sender(program_messages.send).emit, _print, folder.outcome).run()
    except Exception as error:
        program_messages.send(encode(Failed(_text_of(error))))
        if isinstance(error, WmlaError):
            sys.exit(f"{type(error).__name__}: {error}")
        raise


class Sender:
    """Sends results to the driver while this executor is the coordinator.

    The driver drops what it knows (`results.Deduplicator`).
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._recent: deque[Result] = deque(maxlen=REPEATED)
        self._deduplicator = Deduplicator()

    def emit(self, message: Message) -> None:
        """Send the message, or have it sent by the next coordinator."""
        if isinstance(message, Begun):
            new: tuple[Message, ...] = (message, *self._recent)
        elif self._deduplicator.admits(message):
            self._recent.append(message)
            new = (message,)
        else:
            return
        if edt_hvd.is_coordinator():
            for each in new:
                self._send(encode(each))


def _text_of(error: Exception) -> str:
    """The error in one line, with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
    return f"{at}{type(error).__name__}: {error}"[:2000]


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
