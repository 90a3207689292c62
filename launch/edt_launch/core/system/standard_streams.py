"""Standard input, output and error, which whoever starts a process may have closed."""

import os
import sys


def ensure_open() -> None:
    """Have the null device in place of each that is closed.

    Otherwise the next file to be opened would become it, and Python has None for it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - they stay open, as Python's do
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
