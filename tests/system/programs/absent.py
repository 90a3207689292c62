"""Runs another script, but on one host exits with code 1 instead.

absent.py HOST SCRIPT [ARGUMENTS]
"""

import os
import runpy
import sys

_, host, *sys.argv = sys.argv
if os.environ["HOROVOD_HOSTNAME"] == host:
    sys.exit(1)
runpy.run_path(sys.argv[0], run_name="__main__")
