"""Runs another script, later on one host than on others.

late.py HOST SECONDS SCRIPT [ARGUMENTS]
"""

import os
import runpy
import sys
import time

_, host, seconds, *sys.argv = sys.argv
if os.environ["HOROVOD_HOSTNAME"] == host:
    time.sleep(float(seconds))
runpy.run_path(sys.argv[0], run_name="__main__")
