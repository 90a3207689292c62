"""Which slots have a worker: what the processes below horovodrun are for.

Horovod starts a process for every worker, here or for ssh to another host, which ends with the worker. Host
and slot are named in its command line or, where the shell has become the worker, in its environment. Between
horovodrun and that process there is one more, which also runs the discovery script.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import psutil

from edt_launch.agent import processes
from edt_launch.membership.protocol import Slot

_HOST = "HOROVOD_HOSTNAME"
_SLOT = "HOROVOD_LOCAL_RANK"
_RANK = "HOROVOD_RANK"
_IN_COMMAND = re.compile(rf"\b({_HOST}|{_SLOT}|{_RANK})=([^\s'\"]+)")


@dataclass(frozen=True)
class Process:
    """What a process was started for: the slot, and the worker's first rank."""

    slot: Slot
    rank: int


@dataclass(frozen=True)
class Processes:
    """The workers below a horovodrun, by process, and the processes that have not started anything yet."""

    workers: Mapping[int, Process] = field(default_factory=dict)
    starting: frozenset[int] = frozenset()


def of_process(words: Iterable[str], environment: Mapping[str, str]) -> Process | None:
    """What a process with this command line was started for; None if it is no worker's."""
    named = dict(_IN_COMMAND.findall(" ".join(words)))
    variables = named if _HOST in named else environment
    try:
        return Process(Slot(variables[_HOST], int(variables[_SLOT])), int(variables[_RANK]))
    except (KeyError, ValueError):
        return None


def find(pid: int) -> Processes:
    """Look at the processes below a horovodrun."""
    workers: dict[int, Process] = {}
    starting: set[int] = set()
    for between in _children(pid):
        below = _children(between.pid)
        if not below and processes.is_alive(between) and not processes.is_tracker(between):
            starting.add(between.pid)
        for process in below:
            worker = of_process(processes.command_line(process), processes.environment(process))
            if worker is not None and processes.is_alive(process):
                workers[process.pid] = worker
    return Processes(workers, frozenset(starting))


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []
