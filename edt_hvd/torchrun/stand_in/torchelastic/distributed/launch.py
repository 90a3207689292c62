"""`python -m torchelastic.distributed.launch`: hands its command line to `edt torchrun`."""

import os
import sys


def main() -> None:
    """Become `edt torchrun`."""
    words = [sys.executable, "-m", "edt_launch.launcher.command", "--program", "torchrun", *sys.argv[1:]]
    os.execv(sys.executable, words)


if __name__ == "__main__":
    main()
