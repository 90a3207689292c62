"""Loggers of the second generation: metrics first."""

import os

from callbacks import LoggerCallback
from elog import ELog
from emetrics import EMetrics


class DriverLogger(LoggerCallback):
    def __init__(self):
        self.gs = 0

    def on_train_begin(self):
        self.gs = 0

    def log_train_metrics(self, metrics, completed_batch, epoch, workers=0):
        self.gs += 1
        with EMetrics.open() as metrics_file:
            metrics_file.record(EMetrics.TRAIN_GROUP, completed_batch, metrics)
        with ELog.open() as log:
            log.train(self.gs, completed_batch, metrics["loss"], metrics["accuracy"] / 100)

    def log_test_metrics(self, metrics, completed_batch, epoch):
        with EMetrics.open() as metrics_file:
            metrics_file.record(EMetrics.TEST_GROUP, completed_batch, metrics)

    def on_train_end(self):
        with open(os.path.join(os.environ["RESULT_DIR"], "logged.txt"), "x") as file:
            file.write("%d\n" % self.gs)


class WorkerLogger(LoggerCallback):
    def log_train_metrics(self, metrics, iteration, epoch, worker=0):
        with ELog.open() as log:
            log.text("worker: epoch %d, iteration %d, %s" % (epoch, iteration, sorted(metrics)))
