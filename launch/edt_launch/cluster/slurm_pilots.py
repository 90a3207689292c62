"""Pilots: Slurm jobs of one node each, which come and go with what jobs could use.

A pilot only holds its node; agents are started in it by the transport of its name. Works with every
configuration of Slurm, which can add no node to a job that runs. `decide` decides, and does no I/O.
"""

import math
import re
import secrets
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from typer import Option

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource, without_devices
from edt_launch.cluster.slurm_job import ask
from edt_launch.core.errors import UsageError

TRANSPORT = "slurm-pilot"
"""The transport of pilots' nodes."""

NAME = "edt-pilot-"
"""What the names of all pilots begin with."""

QUERY_INTERVAL = 2.0
"""Seconds between two questions to Slurm's controller."""

IDLE_LIMIT = 300.0
"""Seconds after which a pilot that no job uses is cancelled."""

SETTLE_TIME = 15.0
"""Seconds for which a pilot that has started still counts as on its way: jobs take it by then."""

COLUMNS = "JobID:20,State:20,PreemptTime:24,NumCPUs:12,tres-per-node:80,NodeList:80"


@dataclass(frozen=True)
class PilotOptions:
    """The options of `SlurmPilots`."""

    slurm_pilots: Annotated[
        str | None,
        Option(metavar="MIN:MAX", help="Run on one-node Slurm jobs, between MIN and MAX of them, as needed."),
    ] = None
    slurm_options: Annotated[
        str | None, Option(help="sbatch options for them, such as '--partition=low --gpus-per-node=4'.")
    ] = None
    slurm_pool: Annotated[str | None, Option(help="Name by which they are found again after a restart.")] = (
        None
    )


@dataclass(frozen=True)
class Pilot:
    """A pilot as Slurm shows it.

    Attributes:
        node: empty until it runs.
        gpus: it has asked for.
        cpus: of its node, once it runs.
        is_leaving: it ends, or has to make room for another job.
    """

    job: str
    node: str
    gpus: int
    cpus: int
    is_leaving: bool = False

    @property
    def slots(self) -> int:
        """Workers that its node runs: one a GPU, or else one a core."""
        return self.gpus or self.cpus

    @property
    def host(self) -> HostSlots:
        """Its node, as a host. Slurm gives it the whole node, so that GPUs are numbered from 0."""
        if self.gpus:
            return HostSlots(self.node, self.gpus, tuple(map(str, range(self.gpus))), TRANSPORT)
        cores = without_devices(self.node, self.cpus)
        return HostSlots(cores.host, cores.slots, cores.devices, TRANSPORT)


def parse(text: str) -> tuple[Pilot, ...]:
    """The pilots in what squeue prints, in the order of `COLUMNS`; those that have ended are left out."""
    pilots = []
    for line in text.splitlines():
        job, state, preempted, cpus, tres, *rest = line.split()
        if state not in ("PENDING", "CONFIGURING", "RUNNING", "SIGNALING", "COMPLETING"):
            continue
        found = re.search(r"\bgpu(?::[^:=,]+)?[:=](\d+)", tres)
        node = rest[0] if rest and state in ("RUNNING", "SIGNALING") else ""
        is_leaving = state == "COMPLETING" or not re.fullmatch("N/A|NULL|None|Unknown", preempted)
        pilots.append(Pilot(job, node, int(found[1]) if found else 0, int(cpus), is_leaving))
    return tuple(pilots)


@dataclass(frozen=True)
class Decision:
    """How many pilots to submit, and which to cancel."""

    submit: int = 0
    cancel: tuple[str, ...] = ()


def decide(
    now: float,
    pilots: Sequence[Pilot],
    demand: int,
    used: Collection[str],
    since: Mapping[str, float],
    least: int,
    most: int,
) -> Decision:
    """What is to change.

    Args:
        now: in seconds.
        pilots: there are.
        demand: slots that jobs could use besides those of the pilots that run.
        used: nodes that jobs have slots of.
        since: when each pilot that runs was first seen, or was last used.
        least: pilots there are always.
        most: pilots there may be.
    """
    running = [pilot for pilot in pilots if pilot.node and not pilot.is_leaving]
    pending = [pilot for pilot in pilots if not pilot.node and not pilot.is_leaving]
    each = max((pilot.slots for pilot in pilots), default=1)
    coming = sum(pilot.node not in used and now - since[pilot.job] < SETTLE_TIME for pilot in running)
    wanted = max(math.ceil(demand / each) - coming, least - len(running), 0)
    wanted = min(wanted, max(0, most - len(pilots) + len(pending)))
    surplus = [pilot.job for pilot in pending][wanted:]
    idle = [
        pilot.job
        for pilot in running
        if not demand and pilot.node not in used and now - since[pilot.job] >= IDLE_LIMIT
    ]
    return Decision(max(0, wanted - len(pending)), (*surplus, *idle[: max(0, len(running) - least)]))


class SlurmPilots(HostSource):
    """The nodes of pilots.

    Args:
        pool: in the names of its pilots.
        options: of sbatch.
        is_kept: whether pilots that run stay when this process ends: a service started again finds them.
        run: runs a command, and gives what it prints.
    """

    name: ClassVar[str] = "slurm pilots"
    options: ClassVar[type] = PilotOptions
    transport: ClassVar[str] = TRANSPORT
    may_change: ClassVar[bool] = True
    may_grow: ClassVar[bool] = True

    def __init__(
        self,
        pool: str,
        least: int,
        most: int,
        options: Sequence[str] = (),
        *,
        is_kept: bool = False,
        run: Callable[..., str] = ask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = f"{NAME}{pool}"
        self._least, self._most = least, most
        self._sbatch = options
        self._is_kept = is_kept
        self._run = run
        self._clock = clock
        self._pilots: tuple[Pilot, ...] = ()
        self._since: dict[str, float] = {}
        self._used: set[tuple[str, str]] = set()
        self._demand = 0
        self._looked = float("-inf")

    def __str__(self) -> str:
        return f"--slurm-pilots {self._least}:{self._most}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:  # noqa: D102
        given = options.of(PilotOptions)
        if given.slurm_pilots is None:
            if given.slurm_options is not None:
                raise UsageError("--slurm-options is for --slurm-pilots: give that, too")
            return None
        bounds = re.fullmatch(r"(\d{1,5}):(\d{1,5})", given.slurm_pilots)
        if bounds is None or int(bounds[1]) > int(bounds[2]) or not int(bounds[2]):
            raise UsageError(f"--slurm-pilots {given.slurm_pilots}: give MIN:MAX, such as 0:16")
        pool = given.slurm_pool or secrets.token_hex(4)
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,60}", pool):
            raise UsageError(f"--slurm-pool {pool!r}: give up to 60 letters, digits, '_', '.' and '-'")
        words = shlex.split(given.slurm_options or "")
        return cls(pool, int(bounds[1]), int(bounds[2]), words, is_kept=given.slurm_pool is not None)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        if (now := self._clock()) - self._looked >= QUERY_INTERVAL:
            self._looked = now
            self._look(now)
            self._act(now)
        return tuple(pilot.host for pilot in self._pilots if pilot.node and not pilot.is_leaving)

    def reserve(self, host: str, devices: Sequence[str]) -> None:  # noqa: D102
        self._used |= {(host, device) for device in devices}

    def release(self, host: str, devices: Sequence[str]) -> None:  # noqa: D102
        self._used -= {(host, device) for device in devices}

    def demand(self, slots: int) -> None:  # noqa: D102
        self._demand = slots

    def waiting(self) -> str:  # noqa: D102
        pending = sum(not pilot.node and not pilot.is_leaving for pilot in self._pilots)
        if not pending:
            return ""
        more, queued = ("node", "pilot is") if pending == 1 else ("nodes", "pilots are")
        return f"waiting for {pending} more {more}, whose {queued} in Slurm's queue"

    def close(self) -> None:
        """Cancel the pilots; those of a pool that run stay, since its jobs outlive the service."""
        which = ("--state=PENDING",) if self._is_kept else ()
        self._run("scancel", f"--name={self._title}", *which)

    def _look(self, now: float) -> None:
        words = ("squeue", "--me", "--noheader", f"--name={self._title}", f"--Format={COLUMNS}")
        self._pilots = parse(self._run(*words))
        nodes = {host for host, _ in self._used}
        running = {pilot.job: pilot for pilot in self._pilots if pilot.node}
        self._since = {
            job: now if pilot.node in nodes else self._since.get(job, now) for job, pilot in running.items()
        }

    def _act(self, now: float) -> None:
        nodes = {host for host, _ in self._used}
        decision = decide(now, self._pilots, self._demand, nodes, self._since, self._least, self._most)
        if decision.cancel:
            self._run("scancel", *decision.cancel)
        for _ in range(decision.submit):
            what = ("--parsable", "--nodes=1", "--exclusive", "--no-requeue", "--output=/dev/null")
            self._run(
                "sbatch", *what, *self._sbatch, f"--job-name={self._title}", "--wrap=exec sleep infinity"
            )
