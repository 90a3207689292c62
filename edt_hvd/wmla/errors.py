"""What this package raises on its own account.

    edt_hvd.EdtError
    └── WmlaError
        ├── UnsupportedError      a program for a framework that EDT does not train
        ├── UnpicklableError      something that executors need cannot be sent to them
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


class UnpicklableError(WmlaError):
    """Something that executors need cannot be sent to them."""


class TrainingFailedError(WmlaError):
    """The executors of a `FabricModel.train` ended without success."""
