"""Ranks, one a host, that mpirun, srun or a user has started: which one this process is, and their hosts."""

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.core.errors import UsageError

STARTERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")),
)
"""The variables of each starter, in the order in which they count: rank, number of ranks, and what all ranks
of one start have in common, the first of which has to be there.
"""

_OF_STARTERS = re.compile(r"(OMPI|PMIX|PRTE|PMI)_.*")


@dataclass(frozen=True)
class LateRanks:
    """Ranks that may come and go while the job runs.

    Attributes:
        most: how many there may be, rank 0 included.
        last_call: seconds that rank 0 waits for more than it needs, before it starts the job.
    """

    most: int
    last_call: float


@dataclass(frozen=True)
class Rank:
    """One of the processes that mpirun, srun or a user has started with the same command.

    Attributes:
        number: 0 for the one that runs the job.
        count: of ranks; those that are needed at first, if there are late ones.
        start: the same for all ranks of one start, and for no others; fit for the name of a file.
        host: by which this host is known.
        slots: that its host has; None for as many as it has GPUs, else cores.
        late: how others may come and go; None if all ranks are there from the start to the end.
        is_elected: whether several of this machine may have number 0: the first one keeps it.
    """

    number: int
    count: int
    start: str
    host: str
    slots: int | None = None
    late: LateRanks | None = None
    is_elected: bool = False


def rank_of(environment: Mapping[str, str], hostname: str | None = None) -> Rank:
    """Which rank this process is.

    Raises:
        UsageError: neither mpirun nor srun has started it.
    """
    host = name_of_host(environment, hostname)
    for number, count, (first, *others) in STARTERS:
        values = [environment.get(name, "") for name in (number, count)]
        if first in environment and all(value.isdecimal() for value in values):
            start = "-".join([environment[first], *(environment.get(name, "0") for name in others)])
            return Rank(int(values[0]), int(values[1]), for_file_name(start), host)
    raise UsageError(
        "--under-mpi: this process is no rank: start it with Open MPI's mpirun --map-by ppr:1:node, or with "
        "srun --ntasks-per-node=1"
    )


def name_of_host(environment: Mapping[str, str], hostname: str | None = None) -> str:
    """By which name this host is known: Slurm's, else its own."""
    return environment.get("SLURMD_NODENAME") or hostname or socket.gethostname()


def for_file_name(start: str) -> str:
    """What all ranks have in common, fit for the name of a file."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", start)


def without_starter(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those by which MPI, in a worker, would take itself for the rank."""
    return {name: value for name, value in environment.items() if not _OF_STARTERS.fullmatch(name)}


class RankHosts(HostSource):
    """The hosts of the ranks; they do not change."""

    name: ClassVar[str] = "ranks"

    def __init__(self, listed: Callable[[], tuple[HostSlots, ...]]) -> None:
        self._listed = listed

    def __str__(self) -> str:
        return "the ranks"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """None: the ranks say themselves which hosts they are."""
        return None

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        return self._listed()


class ChangingRankHosts(RankHosts):
    """The hosts of ranks that come and go."""

    may_change: ClassVar[bool] = True
    may_grow: ClassVar[bool] = True
