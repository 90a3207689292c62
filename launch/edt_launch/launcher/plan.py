"""What `edt-launch` makes of its options: where and how a job runs. And how the job ended."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.cluster.allocation import Allocation, HostSlots, parse, read
from edt_launch.cluster.follower import SizeLimits
from edt_launch.cluster.hosts import HostOptions, HostSource, cap, spread, unbound
from edt_launch.cluster.local import Slots
from edt_launch.cluster.network import HostChecker
from edt_launch.cluster.sources import SOURCES, THIS_MACHINE, choose, groups
from edt_launch.core.command_line import named
from edt_launch.core.errors import AllocationError, ExitCode, UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.transport import Transport


@dataclass(frozen=True)
class Plan:
    """Where and how to run a program."""

    limits: SizeLimits
    paths: RunDir
    allocation: Allocation | None = None
    """The hosts at first; None to have them from a file or a source, too."""
    follow: Path | None = None
    """The allocation file to follow."""
    source: HostSource | None = None
    """The source of hosts to follow."""
    options: RunOptions = field(default_factory=RunOptions)
    """Those that count as they are given."""
    transports: tuple[Transport, ...] = ()
    """Transports that are there already; the job closes them."""
    checkpoint_dir: Path | None = None
    """The folder of its checkpoints; None for that of the output directory."""

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.checkpoint_dir or self.paths.checkpoint


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended: the exit code, and the last thing to tell the user (may be empty).

    `worker_exit_code` is that of the worker whose failure ended the job, as a shell has it.
    """

    exit_code: ExitCode
    message: str = ""
    worker_exit_code: int | None = None


def source_of(
    options: HostOptions, allocation: Path | None, transport: str | None = None
) -> HostSource | None:
    """The source of a job's hosts; None if it follows an allocation file.

    The file may name hosts of a source whose `transport` leads to them: its options are the transport's then.

    Raises:
        UsageError: options exclude one another, or what they name cannot be used.
    """
    named = named_sources(options, None if allocation is None else transport)
    if allocation is not None:
        named.append("--allocation")
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude one another: give one of them")
    return None if allocation is not None else choose(options)


def named_sources(options: HostOptions, transport: str | None = None) -> list[str]:
    """The options that ask for a source of hosts, but for those whose hosts are reached by this transport."""
    others = {kind.options for kind in SOURCES if transport and kind.transport == transport}
    given = (named(options.of(group)) for group in groups() if group not in others)
    return [names[0] for names in given if names]


def stays_here(options: RunOptions, environment: Mapping[str, str]) -> bool:
    """Whether a job runs on this machine alone: all its hosts are known, and are this one.

    Raises:
        UsageError: as `source_of`, or a host makes no sense.
    """
    try:
        source = source_of(HostOptions(environment, options.groups), options.allocation, options.transport)
        if source is None:
            hosts = parse(read(options.allocation)).hosts if options.allocation is not None else ()
        else:
            with contextlib.closing(source):
                if source.may_change:
                    return False
                hosts = source.hosts()
    except (OSError, AllocationError):  # there may be an allocation later
        return False
    is_here = HostChecker().is_this_machine
    return all(not host.transport and is_here(host.host) for host in hosts)


def announcement(source: HostSource | None, options: HostOptions) -> str:
    """What to tell a user who has named no hosts, and gets others than this machine; else empty."""
    if source is None or source.oversubscribes or named_sources(options):
        return ""
    hosts = source.hosts()
    slots = sum(host.slots for host in hosts)
    return f"edt-launch: uses the hosts of {source} ({slots} slots): {', '.join(host.host for host in hosts)}"


def limits_of(
    min_np: int,
    max_np: int | None,
    source: HostSource | None,
    allocation: Path | None,
    options: HostOptions,
) -> SizeLimits:
    """The job's bounds; it may have one worker a slot at most, unless `max_np` says otherwise.

    Raises:
        UsageError: they contradict one another, or hosts that may change have no limit.
    """
    if max_np is not None:
        default = f"--max-np {max_np}"
    elif source is not None and source.may_grow:
        raise UsageError(f"{source}: give --max-np, too, as more hosts may come at any time")
    elif source is not None and not source.oversubscribes:
        max_np = _slots(source)
        default = f"the {max_np} slots of the hosts"
    else:
        max_np = max(_slots(source or choose(options, THIS_MACHINE)), _slots_in(allocation))
        default = f"--max-np, by default {max_np} here"
    if min_np > max_np:
        raise UsageError(f"--min-np {min_np} is more than {default}: lower it or raise the other")
    return SizeLimits(min_np, max_np)


def allocation_of(source: HostSource | None, limits: SizeLimits, slots_here: int) -> Allocation | None:
    """What a job has at first; None if it follows a file, or a source that may show more hosts later.

    This machine has `slots_here` if no hosts are named.

    Raises:
        UsageError: the hosts have too few slots.
    """
    if source is None or source.may_grow:
        return None
    hosts: tuple[HostSlots, ...] = source.hosts()
    if not isinstance(source, Slots):  # whose workers are to see no GPU
        hosts = tuple(map(unbound, hosts))
    if source.oversubscribes:
        hosts = (spread(hosts[0], slots_here),)
    allocation = Allocation(1, cap(hosts, limits.max_np))
    if allocation.slots < limits.min_np:
        raise UsageError(
            f"{allocation.slots} slots are fewer than --min-np {limits.min_np}: name more hosts or lower it"
        )
    return allocation


def _slots(source: HostSource) -> int:
    return sum(host.slots for host in source.hosts())


def _slots_in(allocation: Path | None) -> int:
    try:
        return parse(read(allocation)).slots if allocation else 0
    except (OSError, AllocationError):
        return 0
