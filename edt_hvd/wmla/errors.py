"""What this package raises on its own account.

    edt_hvd.EdtError
    └── WmlaError
        ├── UnsupportedError      a program for a framework that EDT does not train
        └── TrainingFailedError   the executors ended without success

Bad arguments raise the built-in `ValueError` or `TypeError`.
"""

from edt_hvd import EdtError


class WmlaError(EdtError):
    """Base of the errors of programs written for WMLA."""


class UnsupportedError(WmlaError):
    """The program is for a framework that EDT does not train."""


class TrainingFailedError(WmlaError):
    """The executors of a `FabricModel.train` ended without success."""
