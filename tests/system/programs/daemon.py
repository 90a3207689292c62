"""A job of one process with a daemon, which waits for the lock of the job's launcher and keeps it.

daemon.py OUT
"""

import os
import sys
import time
from pathlib import Path


def main() -> None:
    out, lock = Path(sys.argv[1]), (Path.cwd().parent / "run" / "launcher.lock").open("rb")
    environment = {"PATH": os.environ["PATH"]}  # nothing that says which job it is of
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            (out / "daemon").write_text(str(os.getpid()))
            script = "import fcntl, sys, time; fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX); time.sleep(3600)"
            os.set_inheritable(lock.fileno(), True)
            os.execve(sys.executable, [sys.executable, "-c", script, str(lock.fileno())], environment)
        os._exit(0)
    os.wait()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
