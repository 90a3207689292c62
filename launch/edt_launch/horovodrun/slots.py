"""Which slots have a worker: what the processes below horovodrun are for.

Horovod starts a process for every worker, here or for ssh to another host, which ends with the worker. Host
and slot are named in its command line or, where the shell has become the worker, in its environment. Between
horovodrun and that process there is one more, which also runs the discovery script.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import psutil

from edt_launch.training import processes

_HOST = "HOROVOD_HOSTNAME"
_SLOT = "HOROVOD_LOCAL_RANK"
_IN_COMMAND = re.compile(rf"\b({_HOST}|{_SLOT})=([^\s'\"]+)")


@dataclass(frozen=True)
class Slot:
    """A place for a worker; `index` is its number on the host."""

    host: str
    index: int


@dataclass(frozen=True)
class Found:
    """The processes below a horovodrun.

    Attributes:
        workers: the slots of the workers, by the number of the process that ends with the worker.
        starting: processes that have not started anything yet.
    """

    workers: Mapping[int, Slot] = field(default_factory=dict)
    starting: frozenset[int] = frozenset()


def of_process(words: Iterable[str], environment: Mapping[str, str]) -> Slot | None:
    """The slot that a process was started for; None if it is no worker's.

    Args:
        words: its command line.
        environment: what it was started with.
    """
    named = dict(_IN_COMMAND.findall(" ".join(words)))
    found = named if _HOST in named else environment
    try:
        return Slot(found[_HOST], int(found[_SLOT]))
    except (KeyError, ValueError):
        return None


def find(pid: int) -> Found:
    """Look at the processes below a horovodrun."""
    workers: dict[int, Slot] = {}
    starting: set[int] = set()
    for between in _children(pid):
        below = _children(between.pid)
        if not below and processes.is_alive(between) and not processes.is_tracker(between):
            starting.add(between.pid)
        for process in below:
            slot = of_process(processes.command_line(process), processes.environment(process))
            if slot is not None and processes.is_alive(process):
                workers[process.pid] = slot
    return Found(workers, frozenset(starting))


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []
