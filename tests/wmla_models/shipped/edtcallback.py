"""What the driver does with every mini-batch's result: the first generation of loggers."""

import json
import os

from callbacks import LoggerCallback
from elog import ELog
from emetrics import EMetrics


class EDTLoggerCallback(LoggerCallback):
    def __init__(self):  # the base class's is not called
        self.gs = 0
        self.history = []

    def log_train_metrics(self, loss, acc, completed_batch, worker=0):
        acc = acc / 100.0
        self.gs += 1
        with EMetrics.open() as metrics:
            metrics.record(EMetrics.TEST_GROUP, completed_batch, {"loss": loss, "accuracy": acc})
        with ELog.open() as log:
            log.train(self.gs, completed_batch, loss, acc)
        self.history.append({"steps": self.gs, "loss": loss})

    def log_test_metrics(self, loss, acc, completed_batch, worker=0):
        acc = acc / 100.0
        with ELog.open() as log:
            log.test(loss, acc)

    def on_train_end(self):
        with open(os.path.join(os.environ["RESULT_DIR"], "val_dict_list.json"), "w") as file:
            json.dump(self.history, file)
