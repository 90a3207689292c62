import os

from callbacks import LoggerCallback
from emetrics import EMetrics


class EDTLoggerCallback(LoggerCallback):
    def __init__(self):
        self.gs = 0
        self.log = open(os.path.join(os.environ["LOG_DIR"], "stdout"), "a")  # noqa: SIM115 - not to be pickled

    def log_train_metrics(self, loss, acc, completed_batch, worker=0):
        self.gs += 1
        with EMetrics.open() as em:
            em.record(EMetrics.TEST_GROUP, completed_batch, {"loss": loss, "accuracy": acc / 100.0})
        self.log.write(f"Train {self.gs} {completed_batch} {loss!r} {acc!r}\n")
        self.log.flush()

    def log_test_metrics(self, loss, acc, completed_batch, worker=0):
        self.log.write(f"Test {loss!r} {acc!r}\n")
        self.log.flush()
