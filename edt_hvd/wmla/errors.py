"""What this package raises on its own account.

    edt_hvd.EdtError
    └── WmlaError
        ├── UnsupportedError      a program for a framework that EDT does not train
        ├── WriteRefusedError     a script writes shared files in an executor, before `train`
        └── TrainingFailedError   the executors ended without success

Bad arguments raise the built-in `ValueError` or `TypeError`.
"""

from edt_hvd import EdtError


class WmlaError(EdtError):
    """Base of the errors of programs written for WMLA; notebooks show the message without a traceback."""

    def _render_traceback_(self) -> list[str]:  # IPython's name for it
        return [f"{type(self).__name__}: {self}"]


class UnsupportedError(WmlaError):
    """The program is for a framework that EDT does not train."""


class WriteRefusedError(WmlaError):
    """A script writes shared files in an executor, before `FabricModel.train`."""

    def __init__(self, verb: str, path: str, line: str) -> None:
        super().__init__(
            f"{line} {verb} {path} outside of train(): every executor runs the script up to there, so "
            "it would happen once more in each; do it after the last train(), or only where "
            'os.environ.get("EDT_WMLA_ROLE") != "executor"'
        )


class TrainingFailedError(WmlaError):
    """The executors of a `FabricModel.train` ended without success."""
