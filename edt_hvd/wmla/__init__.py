"""What programs for Watson Machine Learning Accelerator import, on `edt_hvd`'s public interface alone.

One *driver* runs the user's script, once; `FabricModel.train` there hands the training to *executors*, which
are elastic workers, and calls the logger with what they report. Outside ``edt-launch --wmla`` both are one
process.

======================================  ===================================================================
fabric_model                            `FabricModel`: the arguments, and who runs the training
program, schedule                       what is trained, and how: all that executors are given
engine, stepping, validation, hooks     the training itself, in executors
results, journal, loggers, console, ... what came of every mini-batch, and who is told
launching, payload, channel, executor   how driver, launcher and executors meet
======================================  ===================================================================
"""

from edt_hvd.wmla.callbacks import Callback, LoggerCallback
from edt_hvd.wmla.errors import TrainingFailedError, UnsupportedError, WmlaError
from edt_hvd.wmla.fabric_model import FabricModel
from edt_hvd.wmla.logs.emetrics import EMetrics

__all__ = [
    "Callback",
    "EMetrics",
    "FabricModel",
    "LoggerCallback",
    "TrainingFailedError",
    "UnsupportedError",
    "WmlaError",
]
