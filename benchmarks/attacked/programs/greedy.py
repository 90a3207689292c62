"""A job that opens as many descriptors as it may, half of them connections to its own launcher.

greedy.py OUT
"""

import os
import resource
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path


def main() -> None:
    control = Path.cwd().parent / "run" / "control"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    mark = (Path(sys.argv[1]) / f"{os.environ['EDT_JOB_ID']}.greedy").open("a")
    held: list[object] = [mark]
    try:
        while len(held) < 100_000:
            held.append(os.open("/dev/null", os.O_RDONLY))
            connection = socket.socket(socket.AF_UNIX)
            held.append(connection)
            connection.setblocking(False)
            with suppress(BlockingIOError, ConnectionError):
                connection.connect(str(control))
    except OSError as error:
        print(f"{len(held)} descriptors: {error}")
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
