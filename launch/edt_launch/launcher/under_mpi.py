"""A command that is started once a host: rank 0 runs the job, every other rank is the agent of its host.

Rank 0 writes its invitation into a file that only the user can read, in a folder that all hosts share. That
works for every starter, and needs neither MPI in the launcher nor ssh.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from signal import Signals
from typing import ClassVar

from edt_launch.agent import dial_back
from edt_launch.agent.network.invitation import MAX_LINE, Invitation, InvitationError
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.discovery_script import ScriptOptions
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.cluster.network import LOOPBACK
from edt_launch.cluster.ranks import ChangingRankHosts, LateRanks, Rank, RankHosts
from edt_launch.cluster.sources import THIS_MACHINE, choose
from edt_launch.core.errors import EdtLaunchError, ExitCode, StartError, UsageError
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.ports import PortRange
from edt_launch.launcher.plan import JobOutcome, named_sources
from edt_launch.launcher.termination import CODES
from edt_launch.launcher.transports.dial_back import DialBack

POLL = 0.1
"""Seconds between two looks for the invitation."""


class Ranks(DialBack):
    """The agents are ranks, each of which dials back."""

    name: ClassVar[str] = "rank"

    def __init__(self, own: HostSlots, ports: PortRange | None = None) -> None:
        super().__init__(own=own.host, ports=ports)
        self._ranks = {own.host: own}
        self._connected: set[str] = set()
        """Hosts whose agents were connected at the last look."""
        self.exit_code = ExitCode.INTERNAL
        """With which rank 0 will end."""

    def gather(
        self, count: int, timeout: float, signals: Sequence[int], late: LateRanks | None = None
    ) -> tuple[HostSlots, ...]:
        """Wait for the ranks; the hosts of all, by their ranks, late ones of the same rank by name.

        Raises:
            StartError: not all have come for so many seconds, or before a signal.
        """
        self._wait_for(count, timeout, signals)
        if len(self._ranks) < count:
            missing = f"{count - len(self._ranks)} of {count} ranks have not come"
            raise StartError(f"{missing}; there are {', '.join(sorted(self._ranks))}{self._why()}")
        if late is not None:
            self._wait_for(late.most, late.last_call, signals)
        return self._in_order(self._ranks)

    def _wait_for(self, count: int, timeout: float, signals: Sequence[int]) -> None:
        """Wait until so many are there, for so many seconds, or for a signal."""
        deadline = time.monotonic() + timeout
        while len(self._ranks) < count:
            if (host := self.arrival(POLL)) is not None:
                self._ranks[host.host] = host
            elif time.monotonic() >= deadline or signals:
                return

    def present(self) -> tuple[HostSlots, ...]:
        """The hosts of the ranks that are connected now, or were at the last look.

        An agent that has ended is followed by another connection of its rank.
        """
        while (host := self.arrival(0)) is not None:
            self._ranks[host.host] = host
        connected = self.connected() & {*self._ranks}
        shown = connected | self._connected
        self._connected = connected
        return self._in_order(shown)

    def _in_order(self, names: Iterable[str]) -> tuple[HostSlots, ...]:
        own, *others = self._ranks
        shown = sorted({*names} & {*others}, key=lambda name: (self.number(name), name))
        return tuple(self._ranks[name] for name in (own, *shown))

    def _why(self) -> str:
        return "".join(f"; {reason}" for reason in self.refusals)

    def close(self) -> None:
        """The job has ended; the ranks stay until they are dismissed."""

    def problem(self, host: str) -> str | None:  # noqa: D102
        if host in self._ranks:
            return None
        return f"no rank runs on it; there are {', '.join(sorted(self._ranks))}"

    def knows(self, host: str) -> bool:
        """Not rank 0's, whose agent is a child."""
        return host != next(iter(self._ranks)) and super().knows(host)

    def address(self, host: str) -> str | None:  # noqa: D102
        return LOOPBACK if host == next(iter(self._ranks)) else super().address(host)


@contextlib.contextmanager
def elected(rank: Rank, options: RunOptions) -> Iterator[Rank]:
    """This rank, or another with a host name of its own if this machine has a rank 0 already.

    Raises:
        StartError: the folder of the invitation cannot be written.
    """
    if not rank.is_elected:
        yield rank
        return
    file = invitation_file(rank, options)
    with _held(file.with_name(f"{file.name}.lock")) as is_first:
        yield rank if is_first else replace(rank, number=1, host=f"{rank.host}-{os.getpid()}")


@contextlib.contextmanager
def _held(file: Path) -> Iterator[bool]:
    """Whether no other process holds this lock; it is held until the end."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(file)
    except OSError as error:
        raise _unwritable(file, error) from None
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            file.unlink(missing_ok=True)
            os.close(descriptor)


def _lock(file: Path) -> int | None:
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(file)):
                return descriptor
        os.close(descriptor)  # its last holder has removed it in the meantime


def _unwritable(file: Path, error: OSError) -> StartError:
    return StartError(f"{file} cannot be written: {error.strerror}; name a folder with --output-dir")


def own_slots(rank: Rank, environment: Mapping[str, str], options: RunOptions) -> HostSlots:
    """What this rank's host has: so many slots as the option or the rank says, else its GPUs, else its cores.

    Raises:
        UsageError: another option names hosts, too.
    """
    where = HostOptions(environment, options.groups)
    if named := [name for name in named_sources(where) if name != "--slots-per-host"]:
        raise UsageError(
            f"--under-mpi and {' and '.join(named)} exclude one another: the ranks are the hosts"
        )
    slots_per_host = where.of(ScriptOptions).slots_per_host
    (found,) = choose(HostOptions(environment), THIS_MACHINE).hosts()
    slots = slots_per_host or rank.slots or found.slots
    devices = found.devices if found.devices is not None and slots <= found.slots else None
    return HostSlots(rank.host, slots, None if devices is None else devices[:slots])


def invitation_file(rank: Rank, options: RunOptions) -> Path:
    """Where rank 0 leaves its invitation: in the output directory, or where all ranks were started."""
    return Path(os.path.abspath(options.output_dir or ".")) / f".edt-invitation-{rank.start}"


@contextlib.contextmanager
def invited(file: Path, invitation: Invitation) -> Iterator[None]:
    """Have the invitation in a file that only this user can read.

    Raises:
        StartError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, invitation.text + "\n", mode=0o600)
    except OSError as error:
        raise _unwritable(file, error) from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def read_invitation(file: Path, timeout: float, signals: Sequence[int]) -> Invitation | None:
    """Wait for the invitation; None if a signal comes first.

    Raises:
        StartError: it does not come, or somebody else has written it.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and not signals:
        with contextlib.suppress(FileNotFoundError, InvitationError):
            os.listdir(file.parent)  # a file server tells of new files then
            return Invitation.parse(_own_text(file))
        time.sleep(POLL)
    if signals:
        return None
    raise StartError(
        f"rank 0 has left no invitation in {file} for {timeout:g} s: name a folder that all hosts share with "
        "--output-dir"
    )


def _own_text(file: Path) -> str:
    """What is in a file that this user has written, and nobody else could: who invites runs programs here."""
    with open(
        file, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    ) as opened:
        status = os.fstat(opened.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise StartError(f"{file} is not this user's alone: remove it, or name another --output-dir")
        return opened.read(MAX_LINE)


def serve(
    rank: Rank, options: RunOptions, own: HostSlots, environment: Mapping[str, str], signals: Sequence[int]
) -> dial_back.End:
    """Be the agent of this rank's host until rank 0 has ended; a late rank, until a signal, too.

    Returns:
        How it has ended; its exit code is one of `ExitCode`.

    Raises:
        StartError: rank 0 cannot be reached, or refuses this rank.
    """
    invitation = read_invitation(invitation_file(rank, options), options.start_timeout, signals)
    if invitation is None:
        return dial_back.End(CODES.get(Signals(signals[0]), ExitCode.LEFT), has_reached=False)
    serving = dial_back.run(
        invitation,
        rank.host,
        dict(environment),
        stays=True,
        leaves=rank.late is not None,
        number=rank.number,
        slots=own.slots,
        devices=own.devices or (),
    )
    try:
        return asyncio.run(serving)
    except dial_back.RefusedError as error:
        raise StartError(f"rank {rank.number} is refused: {error}") from None
    except dial_back.UnreachableError as error:
        raise StartError(f"rank {rank.number} does not reach rank 0: {error}") from None


def outcome_of(rank: Rank, end: dial_back.End, options: RunOptions) -> JobOutcome:
    """How a rank other than 0 ends."""
    if options.under_mpi and end.has_reached:  # mpirun would end rank 0 before it has said why
        return JobOutcome(ExitCode.SUCCESS)
    if options.under_mpi:
        text = f"edt-launch: a signal ended rank {rank.number} before it had reached rank 0"
        return JobOutcome(ExitCode.NOT_STARTED, text)
    if end.exit_code is None:
        text = "edt-launch: the first node has ended without saying how; its own output has more"
        return JobOutcome(ExitCode.JOB_FAILED, text)
    return JobOutcome(ExitCode(end.exit_code))


@contextlib.contextmanager
def _dismissed(ranks: Ranks) -> Iterator[Ranks]:
    try:
        yield ranks
    except EdtLaunchError as error:
        ranks.exit_code = error.exit_code
        raise
    finally:
        ranks.dismiss(ranks.exit_code)


@contextlib.contextmanager
def gathered(
    rank: Rank, options: RunOptions, own: HostSlots, signals: Sequence[int]
) -> Iterator[tuple[Ranks, HostSource, tuple[HostSlots, ...]]]:
    """All ranks, and the source of their hosts, as rank 0 has them, and the hosts at first.

    In the end all ranks are told `Ranks.exit_code`.

    Raises:
        StartError: they have not come.
    """
    with _dismissed(Ranks(own, options.ports)) as ranks, contextlib.ExitStack() as stack:
        stack.enter_context(invited(invitation_file(rank, options), ranks.invitation))
        hosts = ranks.gather(rank.count, options.start_timeout, signals, rank.late)
        if rank.late is None:
            stack.close()
        source = RankHosts(lambda: hosts) if rank.late is None else ChangingRankHosts(ranks.present)
        yield ranks, source, hosts
