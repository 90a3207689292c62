"""Sets the clock of all Python processes that have it in PYTHONPATH: by the seconds in the file CLOCK_OFFSET.

Only what the system's clock shows is changed, not how time passes: `time.monotonic` goes on as it does.
"""

import os
import time

_time, _time_ns = time.time, time.time_ns


def _offset() -> float:
    try:
        with open(os.environ["CLOCK_OFFSET"]) as file:
            return float(file.read() or 0)
    except (KeyError, FileNotFoundError):
        return 0.0


time.time = lambda: _time() + _offset()
time.time_ns = lambda: _time_ns() + round(_offset() * 1e9)

try:
    import psutil
except ImportError:  # not in the environment
    pass
else:
    _boot_time = psutil._psplatform.boot_time
    psutil._psplatform.boot_time = lambda: _boot_time() + _offset()
