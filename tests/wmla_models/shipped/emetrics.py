"""Metrics as lines of JSON: a copy of one's own, which wins over the platform's."""

import datetime
import json
import os


class EMetrics:
    TEST_GROUP = "test"
    TRAIN_GROUP = "train"
    rindex = 0

    def __init__(self, file):
        self.file = file

    @staticmethod
    def open(subId=None):
        return EMetrics(open(os.path.join(os.environ["LOG_DIR"], "evaluation-metrics.txt"), "a"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def record(self, group, step, values):
        EMetrics.rindex += 1
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        line = {
            "meta": {
                "training_id": os.environ.get("TRAINING_ID") or os.environ.get("DLI_EXECID", ""),
                "time": now,
                "rindex": EMetrics.rindex,
                "writer": "a copy of one's own",
            },
            "grouplabel": group,
            "etimes": {"iteration": {"type": 2, "value": str(step)}, "time_stamp": {"value": now}},
            "values": {name: {"type": 3, "value": str(value)} for name, value in values.items()},
        }
        self.file.write(json.dumps(line) + "\n")
