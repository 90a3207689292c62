"""The ranks of mpirun or srun, one a host: which one this process is, and the hosts that they are."""

import re
import socket
from collections.abc import Mapping
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
class Rank:
    """A process that mpirun or srun has started.

    Attributes:
        number: 0 for the one that runs the job.
        count: of ranks.
        start: the same for all ranks of one start, and for no others; fit for the name of a file.
        host: by which this host is known.
    """

    number: int
    count: int
    start: str
    host: str


def rank_of(environment: Mapping[str, str], hostname: str | None = None) -> Rank:
    """Which rank this process is.

    Raises:
        UsageError: neither mpirun nor srun has started it.
    """
    host = environment.get("SLURMD_NODENAME") or hostname or socket.gethostname()
    for number, count, (first, *others) in STARTERS:
        values = [environment.get(name, "") for name in (number, count)]
        if first in environment and all(value.isdecimal() for value in values):
            start = "-".join([environment[first], *(environment.get(name, "0") for name in others)])
            return Rank(int(values[0]), int(values[1]), re.sub(r"[^A-Za-z0-9.-]", "_", start), host)
    raise UsageError(
        "--under-mpi: this process is no rank: start it with Open MPI's mpirun --map-by ppr:1:node, or with "
        "srun --ntasks-per-node=1"
    )


def without_starter(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those by which MPI, in a worker, would take itself for the rank."""
    return {name: value for name, value in environment.items() if not _OF_STARTERS.fullmatch(name)}


@dataclass(frozen=True)
class RankHosts(HostSource):
    """The hosts of the ranks; they do not change."""

    name: ClassVar[str] = "ranks"
    found: tuple[HostSlots, ...]

    def __str__(self) -> str:
        return "the ranks"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """None: the ranks say themselves which hosts they are."""
        return None

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        return self.found
