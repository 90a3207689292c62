"""Text lines in $LOG_DIR/stdout, which a notebook reads while the training runs."""

import os
import time


class ELog:
    def __init__(self, file):
        self.file = file

    @staticmethod
    def open():
        if "LOG_DIR" in os.environ:
            folder = os.environ["LOG_DIR"]
        elif "JOB_STATE_DIR" in os.environ:
            folder = os.path.join(os.environ["JOB_STATE_DIR"], "logs")
        else:
            folder = "/tmp"
        os.makedirs(folder, exist_ok=True)
        return ELog(open(os.path.join(folder, "stdout"), "a"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def text(self, text):
        now = time.time()
        day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        self.file.write("[%s] %s\n" % (day, text.replace("<ms>", str(int(now * 1000)))))

    def train(self, steps, iteration, loss, accuracy):
        values = "Global steps: %d,\tIteration: %d,\tLoss: %.5f,\tAccuracy: %.5f" % (
            steps,
            iteration,
            loss,
            accuracy,
        )
        self.text("Train,\tTimestamp: <ms>,\t" + values)

    def test(self, loss, accuracy):
        self.text("Test,\tTimestamp: <ms>,\tLoss: %.5f,\tAccuracy: %.5f" % (loss, accuracy))
