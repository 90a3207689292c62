"""The rendezvous handler: what torchrun asks of it, answered by the allocation.

All agents read the same file, so they agree on nodes, ranks and generation without a vote or a last call.
They meet at a store on the allocation's first host (`edt_rendezvous.meeting`), to begin together and to begin
again: a world is a generation of the allocation and an attempt, from 0, for which each agent arrives once.
Rank 0's agent serves a store for each world, which the workers use, too.
"""

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.distributed import DistError
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)
from typing_extensions import override

from edt_launch.cluster import allocation
from edt_launch.cluster.network import HostChecker
from edt_launch.core.errors import AllocationError
from edt_launch.service.app.home import Home
from edt_rendezvous.endpoint import allocation_path, port_of, workers_per_node
from edt_rendezvous.meeting import LIMIT, Meeting, missing
from edt_rendezvous.membership import World, is_restart_under_way, must_restart, own_rank, world_of
from edt_rendezvous.seat import Seat

BACKEND = "edt"
STOP = "stop"
"""Key in the store of a world: its agents are about to stop their workers."""
STOP_LIMIT = 10.0
"""Seconds to wait for agents that do not say so."""
POLL = 0.1
"""Seconds between two looks while an agent waits."""
TELL_AFTER = 5.0
"""Seconds after which an agent says what it waits for."""
JOIN_TIMEOUT = 600.0
"""Seconds to wait for the agents of all nodes, unless --rdzv-conf has `join_timeout`."""
LEAVE_LIMIT = 3.0
"""Seconds for which the agent that serves the store stays at the end, so that idle agents see it."""

_log = logging.getLogger(__name__)


class AllocationFile:
    """Reads the allocation again when the file has changed; one that makes no sense is reported once.

    Args:
        path: the file.
        read: gives the world of an allocation.

    Raises:
        RendezvousConnectionError: the file is missing, or makes no sense, at the beginning.
    """

    def __init__(self, path: Path, read: Callable[[allocation.Allocation], World]) -> None:
        self.path = path
        self._read = read
        self._problem: str | None = None
        newest = self._newest()
        if newest is None:
            raise RendezvousConnectionError(
                f"--rdzv-endpoint {path}: {self._problem}; name the allocation file of a job, or the id of a "
                "job of the service on this machine"
            )
        self._world = newest

    def world(self) -> World:
        """The newest valid one."""
        newest = self._newest()
        if newest is not None and newest.generation > self._world.generation:
            self._world = newest
        return self._world

    def _newest(self) -> World | None:
        try:
            found = self._read(allocation.parse(allocation.read(self.path)))
        except (OSError, AllocationError) as error:
            problem = str(error) if isinstance(error, AllocationError) else error.strerror or str(error)
            if problem != self._problem:
                _log.warning("%s: %s; the nodes stay as they are", self.path, problem)
            self._problem = problem
            return None
        self._problem = None
        return found


class AllocationRendezvous(RendezvousHandler):
    """Answers torchrun's questions.

    Args:
        file: the allocation.
        meeting: where the agents meet.
        seat: which of this machine's agents this one is.
        is_here: whether a host is this machine.
        run_id: the job, as --rdzv-id has it.
        min_nodes: nodes without which the job waits.
        join_timeout: seconds to wait for the agents of all nodes.
    """

    def __init__(
        self,
        file: AllocationFile,
        meeting: Meeting,
        seat: Seat,
        is_here: Callable[[str], bool],
        run_id: str,
        min_nodes: int,
        join_timeout: float,
    ) -> None:
        self._file = file
        self._meeting = meeting
        self._seat = seat
        self._is_here = is_here
        self._run_id = run_id
        self._min_nodes = min_nodes
        self._join_timeout = join_timeout
        self._world: World | None = None
        self._rank = 0
        self._attempt = 0
        self._has_trained = False
        self._is_idle = False
        self._store: TCPStore | None = None
        self._told = ""

    @override
    def get_backend(self) -> str:
        return BACKEND

    @property
    @override
    def use_agent_store(self) -> bool:
        """True: workers use the store that rank 0's agent serves for their world."""
        return True

    @override
    def get_run_id(self) -> str:
        return self._run_id

    @override
    def next_rendezvous(self) -> RendezvousInfo:
        """Wait until the allocation has a place for this agent, and all its nodes are here."""
        self._world = None
        began = time.monotonic()
        while True:
            world = self._file.world()
            rank = own_rank(world, self._is_here, self._seat.number)
            try:
                if rank is not None and len(world.nodes) >= self._min_nodes:
                    self._be_idle(False)
                    if self._meet(world, rank, began):
                        return self._formed(world, rank)
                else:
                    self._wait_for_a_place(world)
                    began = time.monotonic()
            except DistError as error:
                self._tell(
                    f"the store at {self._meeting.address(world)} is lost ({_first_line(error)})", began
                )
                self._meeting.lose()
            time.sleep(POLL)

    @override
    def num_nodes_waiting(self) -> int:
        """1 if torchrun is to stop the workers and to ask for the next world, else 0."""
        world, store = self._world, self._store
        if world is None or store is None:
            return 0
        target = self._file.world()
        attempt = self._attempt + 1 if target.generation == world.generation else 0
        try:
            is_reached = bool(target.nodes) and self._meeting.reach(target)
            arrived = self._meeting.arrived(target, attempt) if is_reached else set()
        except DistError:
            self._meeting.lose()
            return 1  # the agent that served it has ended: all others see it, too
        if is_restart_under_way(world, target, arrived):
            return 1
        with suppress(DistError):  # rank 0's agent, which served it, has stopped its workers already
            if must_restart(world, target, arrived) or store.check([STOP]):
                self._stop_together(world, store)
                return 1
            return 0
        return 1

    def _stop_together(self, world: World, store: TCPStore) -> None:
        """Wait until all agents are about to stop their workers.

        The workers of another agent would fail without those of this one, and that would count as a failure.
        """
        store.set(STOP, "1")
        store.set(f"{STOP}/{self._rank}", "1")
        every = [f"{STOP}/{rank}" for rank in range(len(world.nodes))]
        deadline = time.monotonic() + STOP_LIMIT
        while not store.check(every) and time.monotonic() < deadline:
            time.sleep(POLL / 10)

    @override
    def is_closed(self) -> bool:
        try:
            return self._meeting.is_closed()
        except DistError:
            return False

    @override
    def set_closed(self) -> None:
        with suppress(DistError):  # without a store, nobody waits at it
            self._meeting.close()

    @override
    def shutdown(self) -> bool:
        """Close the rendezvous; an agent that serves its store stays until the idle ones know."""
        self.set_closed()
        deadline = time.monotonic() + LEAVE_LIMIT
        with suppress(DistError):
            while self._meeting.is_serving and self._meeting.count_idle() > 0 and time.monotonic() < deadline:
                time.sleep(POLL)
        self._meeting.lose()
        self._seat.release()
        return True

    def _meet(self, world: World, rank: int, began: float) -> bool:
        """Arrive at the first attempt that is not complete; True when all others have, too."""
        if not self._meeting.reach(world):
            self._wait_for(world, {rank}, began)
            return False
        self._leave_if_closed(self._has_trained)
        attempt = 0
        while self._meeting.is_complete(world, attempt):
            attempt += 1
        self._meeting.arrive(world, attempt, rank)
        self._attempt = attempt
        while not self._meeting.is_complete(world, attempt):
            if self._file.world().generation != world.generation:
                return False
            self._leave_if_closed(self._has_trained)
            self._wait_for(world, self._meeting.arrived(world, attempt), began)
            time.sleep(POLL)
        return True

    def _formed(self, world: World, rank: int) -> RendezvousInfo:
        """Take part in a world: bind its devices, and serve or find its store."""
        devices = world.nodes[rank].devices
        if devices is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
        host = world.nodes[0].host
        if rank == 0:
            self._store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=LIMIT)
            self._meeting.publish(world, self._attempt, str(self._store.port))
            port = self._store.port
        else:
            while (found := self._meeting.published(world, self._attempt)) is None:
                time.sleep(POLL)
            port = int(found)
            self._store = TCPStore(host, port, wait_for_workers=False, timeout=LIMIT)
        self._world, self._rank, self._has_trained, self._told = world, rank, True, ""
        return RendezvousInfo(
            PrefixStore("agents", self._store), rank, len(world.nodes), RendezvousStoreInfo(host, port)
        )

    def _wait_for_a_place(self, world: World) -> None:
        """Look whether an agent of a lower number has ended, or the job is over."""
        if (
            not self._seat.take_lower()
            and world.nodes
            and self._meeting.is_reachable(world)
            and self._meeting.reach(world)
        ):
            self._leave_if_closed(False)
            self._be_idle(True)
        if len(world.nodes) < self._min_nodes:
            found = f"has {len(world.nodes)} nodes of the {self._min_nodes} that the job needs"
        else:
            found = "has no place for this agent"
        self._tell(f"generation {world.generation} of {self._file.path} {found}; it waits for the next one")

    def _be_idle(self, is_idle: bool) -> None:
        if is_idle != self._is_idle:
            if self._meeting.is_connected:
                self._meeting.count_idle(1 if is_idle else -1)
            self._is_idle = is_idle

    def _leave_if_closed(self, is_failure: bool) -> None:
        if self._meeting.is_closed():
            self._be_idle(False)
            if is_failure:
                raise RendezvousClosedError(f"the job {self._run_id!r} has ended on another node")
            _log.warning("the job %r is over", self._run_id)
            raise SystemExit(0)  # of RendezvousGracefulExitError, torch 2.13 makes an AttributeError

    def _wait_for(self, world: World, arrived: set[int], began: float) -> None:
        """Say which agents are missing, once.

        Raises:
            RendezvousTimeoutError: they have been for too long.
        """
        waited = time.monotonic() - began
        text = f"no agent of torchrun has come on {missing(world, arrived)}, of generation {world.generation}"
        if waited > self._join_timeout:
            raise RendezvousTimeoutError(
                f"{text} of {self._file.path}, for {self._join_timeout:g} s (--rdzv-conf join_timeout): "
                "start torchrun there, or take the host out of the allocation"
            )
        self._tell(f"{text}; {len(arrived)} of {len(world.nodes)} are here, and wait", began)

    def _tell(self, text: str, began: float | None = None) -> None:
        """Say something unless it is what was said last, or the wait is still short."""
        if text != self._told and (began is None or time.monotonic() - began > TELL_AFTER):
            _log.warning("%s", text)
            self._told = text


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def create(params: RendezvousParameters) -> RendezvousHandler:
    """Make the handler for a command line of torchrun.

    Raises:
        ValueError: an option is wrong.
        RendezvousConnectionError: the allocation is missing or makes no sense.
    """
    config: dict[str, Any] = params.config
    path = allocation_path(params.endpoint.strip(), Home.default())
    workers = workers_per_node(config)
    job = f"{path}\0{params.run_id}"
    checker = HostChecker()

    def is_here(host: str) -> bool:
        return host == params.local_addr or (
            checker.address(host) is not None and not checker.is_remote(host)
        )

    return AllocationRendezvous(
        file=AllocationFile(path, lambda found: world_of(found, workers, params.max_nodes)),
        meeting=Meeting(params.run_id, port_of(path, params.run_id, config), is_here),
        seat=Seat(job),
        is_here=is_here,
        run_id=params.run_id,
        min_nodes=params.min_nodes,
        join_timeout=float(config.get("join_timeout", JOIN_TIMEOUT)),
    )
