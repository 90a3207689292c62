"""The agent's process: signals, standard streams and children are ours, and nobody else's."""

import os
import signal
import stat
import sys

from edt_launch.agent.agent import Agent
from edt_launch.agent.system.subreaper import adopt_orphans
from edt_launch.core.errors import ExitCode

IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that reach every process of a host at once; the agent ends with its launcher."""


def main() -> None:
    """Be an agent; returns when its launcher is gone, and all workers are."""
    mode = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        print("edt agent: edt-launch starts this on each host, and talks to it", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    adopt_orphans()
    for number in IGNORED:  # a handler, not SIG_IGN, which workers would inherit
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # of Slurm to all processes of a step, meant for edt-launch
    reading, writing = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # nobody else is to write into the conversation
    Agent(reading, writing).run()
