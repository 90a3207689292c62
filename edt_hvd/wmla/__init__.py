"""What programs for Watson Machine Learning Accelerator import, on `edt_hvd`'s public interface alone.

One *driver* runs the script; `FabricModel.train` there hands the program to *executors*, which are elastic
workers, and calls the logger with their results. Outside ``edt-launch --wmla`` both are one process.

======================================  ===================================================================
fabric_model                            `FabricModel`: the arguments, and who runs the training
script, driving, launching              the driver, and how it has the launcher start executors
program_file, pickling, executor        how executors are given what they train
job_dir                                 the files that driver and executors share
program, train_config, training         what is trained, and how; the training itself
results, logs                           what came of every mini-batch, and who is told
notebook                                the kernel of a notebook as the driver
======================================  ===================================================================
"""

from edt_hvd.wmla.callbacks import Callback, LoggerCallback
from edt_hvd.wmla.errors import TrainingFailedError, UnpicklableError, UnsupportedError, WmlaError
from edt_hvd.wmla.fabric_model import FabricModel
from edt_hvd.wmla.logs.emetrics import EMetrics

__all__ = [
    "Callback",
    "EMetrics",
    "FabricModel",
    "LoggerCallback",
    "TrainingFailedError",
    "UnpicklableError",
    "UnsupportedError",
    "WmlaError",
]
