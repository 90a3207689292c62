"""A job of one process that is over soon: writes down, as pooled.py does, when it had which device.

brief.py OUT [SECONDS]
"""

import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    out, seconds = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.2
    job = os.environ["EDT_JOB_ID"]
    with (out / f"{job}.{os.getpid()}.jsonl").open("a", buffering=1) as journal:
        for kind in ("begin", "end"):
            where = {"host": os.environ["HOROVOD_HOSTNAME"], "device": os.environ["EDT_DEVICE"]}
            row = {"kind": kind, "time": time.monotonic(), "job": job, **where}
            journal.write(json.dumps(row) + "\n")
            if kind == "begin":
                time.sleep(seconds)


if __name__ == "__main__":
    main()
