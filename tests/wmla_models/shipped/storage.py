"""Storage that is sometimes slow: while the data has a file `slow`, every read takes the seconds it says."""

import os
import time


def wait():
    try:
        with open(os.path.join(os.environ["DATA_DIR"], "slow")) as file:
            seconds = float(file.read() or 0)
    except FileNotFoundError:
        return
    time.sleep(seconds)
