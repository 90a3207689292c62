"""What programs for Watson Machine Learning Accelerator import, on `edt_hvd`'s public interface alone.

One *driver* runs the script; `FabricModel.train` there has *executors* train, which are elastic workers,
and calls the logger with their results. Executors run the script, too, up to and through `train`.
Outside ``edt-launch --wmla`` both are one process.

======================================  ===================================================================
fabric_model                            `FabricModel`: the arguments, and who runs the training
process, script, driving, launching     the driver, and how it has the launcher start executors
executor, executing, write_guard, ...   an executor, before and at `train`
job_dir, result_files, train_call       the files that driver and executors share, and what is compared
program, train_config, training         what is trained, and how; the training itself
results, logs                           what came of every mini-batch, and who is told
======================================  ===================================================================
"""

from edt_hvd.wmla.callbacks import Callback, LoggerCallback
from edt_hvd.wmla.errors import TrainingFailedError, UnsupportedError, WmlaError, WriteRefusedError
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
    "WriteRefusedError",
]
