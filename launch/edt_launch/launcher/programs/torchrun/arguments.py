"""What a user asks of `torchrun`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

LAST_CALL = 5.0
"""Seconds from the least number of nodes to the start, for nodes that are started at the same time."""


class ResizeAt(StrEnum):
    """When a world may be replaced by a larger or smaller one."""

    CHECKPOINT = "checkpoint"
    NOW = "now"
    EPOCH = "epoch"


@dataclass(frozen=True)
class Resizing:
    """When a world is replaced: at a checkpoint, now, or where every `epochs`-th epoch begins."""

    at: ResizeAt = ResizeAt.CHECKPOINT
    epochs: int = 1

    def __str__(self) -> str:
        return f"{self.at}:{self.epochs}" if self.at is ResizeAt.EPOCH else str(self.at)


@dataclass(frozen=True)
class Streams:
    """Which streams of which local ranks are meant: 1 standard output, 2 standard error, 3 both."""

    default: int = 0
    by_rank: tuple[tuple[int, int], ...] = ()

    def has(self, local_rank: int, stream: str) -> bool:
        """Whether a stream, "stdout" or "stderr", of a local rank is meant."""
        return bool(dict(self.by_rank).get(local_rank, self.default) & {"stdout": 1, "stderr": 2}[stream])

    @property
    def is_any(self) -> bool:
        """Whether any is."""
        return bool(self.default) or any(value for _, value in self.by_rank)


@dataclass(frozen=True)
class Meeting:
    """Where the nodes of a job meet, on each of which a user starts the same command."""

    host: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What a user has asked of torchrun."""

    command: tuple[str, ...] = ()
    min_nodes: int = 1
    max_nodes: int = 1
    nproc: int = 1
    run_id: str = "none"
    role: str = "default"
    max_restarts: int = 0
    log_dir: Path | None = None
    redirects: Streams = Streams()
    tee: Streams = Streams()
    local_ranks: frozenset[int] = frozenset()
    """Local ranks whose output is shown; all if there are none."""
    stdout_filters: tuple[str, ...] = ()
    stderr_filters: tuple[str, ...] = ()
    prefix: str | None = None
    master_addr: str | None = None
    """MASTER_ADDR; None for this machine's address."""
    master_port: int = 0
    """MASTER_PORT of the first world; 0 for a free one, as in all later ones."""
    virtual_local_rank: bool = False
    numa_binding: str | None = None
    shutdown_timeout: float = 30.0
    passes_local_rank: bool = False
    """Whether each worker gets `--local-rank=N`, as with `torch.distributed.launch`."""
    resizing: Resizing = Resizing()
    grace: float = 120.0
    meeting: Meeting | None = None
    """The rendezvous, or --master-addr."""
    last_call: float = LAST_CALL
    """Seconds that the first node waits for more than the least number of nodes, before it starts the job."""
    node_rank: int | None = None
    notes: tuple[str, ...] = ()
    """What to tell the user of options that change nothing."""
