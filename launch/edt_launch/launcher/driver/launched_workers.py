"""The processes of the workers: starting and ending them on their hosts, and which may be there still."""

import logging
import sched
from collections.abc import Callable, Mapping, Sequence

import psutil

from edt_launch.agent.protocol import LEASE
from edt_launch.agent.system import processes
from edt_launch.core.errors import HOST_LOST, StartError
from edt_launch.core.history import events
from edt_launch.core.system.reserved_variables import WORKER_TOKEN
from edt_launch.launcher.control import ControlServers
from edt_launch.launcher.hosts.agents import Agents
from edt_launch.launcher.hosts.host_events import Lost
from edt_launch.membership import protocol
from edt_launch.membership.intake import KILLED
from edt_launch.membership.protocol import Worker
from edt_messages import messages

log = logging.getLogger(__name__)

END_GRACE = 5.0
"""Seconds that a worker which was asked to end has before it is killed."""

KILL_GRACE = 10.0
"""Seconds in which an agent has to say that a worker is gone which it was told to kill."""


class LaunchedWorkers:
    """The workers that were started, until their ends are reported, and those that were given up.

    Args:
        agents: start and end the processes.
        server: tells workers to end.
        token: of the workers of this run.
        timers: call what is due.
        grace: seconds from SIGTERM to SIGKILL of a worker that is asked to end.
        given_up: workers of earlier runs whose processes may be there still.
        report: takes events.
        print_line: puts a line among what a worker prints to standard error.
        ended: is told once of each worker that has ended, or is given up.

    Attributes:
        given_up: workers whose processes may be there still, those of earlier runs included.
    """

    def __init__(
        self,
        agents: Agents,
        server: ControlServers,
        token: str,
        timers: sched.scheduler,
        grace: float,
        given_up: Mapping[int, Worker],
        report: Callable[[events.Event], None],
        print_line: Callable[[int, str], None],
        ended: Callable[[protocol.Exited], None],
    ) -> None:
        self._agents = agents
        self._server = server
        self._token = token
        self._timers = timers
        self._grace = grace
        self._report = report
        self._print_line = print_line
        self._ended = ended
        self._hosts: dict[int, str] = {}
        """Where the workers run whose end has not been reported."""
        self._pids: dict[int, int] = {}
        self._to_end: set[int] = set()
        self._unreachable: dict[str, str] = {}
        """Hosts whose agent is lost, or cannot be started, and why, at the last attempt."""
        self.given_up = dict(given_up)
        elsewhere = frozenset(key for key, at in given_up.items() if not agents.is_here(at.slot.host))
        timers.enter(2 * LEASE, 0, self._release, (elsewhere,))

    def host_of(self, worker: int) -> str | None:
        """Where a worker runs; None once its end has been reported."""
        return self._hosts.get(worker)

    def pid_of(self, worker: int) -> int:
        """The process of a worker that has connected."""
        return self._pids[worker]

    def announce(self, worker: Worker) -> None:
        """A worker is about to be started: report it, once for each of its devices."""
        device = worker.slot.device
        for each in [None] if device is None else device.split(","):
            self._report(events.Started(*worker.where[:3], each, worker.rank))
        self._hosts[worker.id] = worker.slot.host

    def start(
        self, worker: Worker, variables: Mapping[str, str], meets_at: str | None, command: Sequence[str]
    ) -> None:
        """Start a worker that has been announced; see `Agents.start`.

        Raises:
            StartError: there is no agent, and none can be executed.
        """
        self._agents.start(worker.slot.host, worker.id, variables, meets_at, command)

    def has_process(self, worker: int, pid: int) -> None:
        """A worker's process runs."""
        self._pids[worker] = pid

    def has_connected(self, worker: int, pid: int) -> None:
        """A worker has connected to `server`."""
        self._pids[worker] = pid
        if worker in self._to_end:
            self._server.send(worker, messages.End())  # it was not there yet when this was sent first

    # Ending them.

    def ask_to_end(self, worker: int) -> None:
        """Have a worker's process get SIGTERM, half of the grace later what it has started, then SIGKILL."""
        self._report(events.Ending(worker, "SIGTERM"))
        if not self._server.send(worker, messages.End(has_grace=True)):
            self._agents.terminate(self._hosts[worker], worker)
        self._timers.enter(self._grace / 2, 0, self._ask_others_to_end, (worker,))
        self._timers.enter(self._grace, 0, self._end_grace, (worker,))

    def end(self, worker: int, *, at_once: bool) -> None:
        """End a worker; unless at once, it has a moment to close its connections."""
        self._report(events.Ending(worker))
        self._to_end.add(worker)
        is_told = self._server.send(worker, messages.End())
        if is_told and not at_once:
            self._timers.enter(END_GRACE, 0, self.kill, (worker,))
        else:
            self.kill(worker)

    def send_sigterm(self, worker: int, grace: float) -> None:
        """End a worker by SIGTERM, and by SIGKILL after so many seconds."""
        self._report(events.Ending(worker))
        self._to_end.add(worker)
        if worker in self._hosts:
            self._agents.terminate(self._hosts[worker], worker)
            self._timers.enter(grace, 0, self.kill, (worker,))

    def kill(self, worker: int) -> None:
        """Kill a worker with everything that it has started."""
        if worker in self._hosts:
            self._agents.kill(self._hosts[worker], worker)
            self._timers.enter(KILL_GRACE, 0, self._give_up, (worker,))

    def _ask_others_to_end(self, worker: int) -> None:
        if worker in self._hosts:
            self._agents.terminate(self._hosts[worker], worker, others=True)

    def _end_grace(self, worker: int) -> None:
        if worker in self._hosts:
            text = f"edt-launch: still there {self._grace:g} s after SIGTERM: killed by SIGKILL"
            self._print_line(worker, text)
            self._report(events.Ending(worker, "SIGKILL"))
            self.kill(worker)

    def _give_up(self, worker: int) -> None:
        """The agent does not say that a worker is gone that it was to kill: it may be stopped."""
        if worker not in self._hosts:
            return
        is_here = self._agents.is_here(self._hosts[worker])
        left = self._processes_of(worker) if is_here else set()
        processes.kill(left)
        is_gone = is_here and not any(map(processes.is_alive, left))
        log.info("the agent does not say that worker %d is gone", worker)
        self.take_end(protocol.Exited(worker, KILLED, is_gone))

    def _processes_of(self, worker: int) -> set[psutil.Process]:
        ours = {processes.JOB_VARIABLE: self._agents.job}
        known = processes.tree(self._pids[worker]) if worker in self._pids else set()
        is_ours = any(ours.items() <= processes.environment(process).items() for process in known)
        marked = processes.having({WORKER_TOKEN: self._token, "EDT_WORKER": str(worker)})
        return (known if is_ours else set()) | marked

    # What becomes of them.

    def take_end(self, exited: protocol.Exited) -> None:
        """A worker has ended, or is given up; one that was given up before may be known to be gone now."""
        if self._hosts.pop(exited.worker, None) is not None:
            self._ended(exited)
        elif exited.is_gone and exited.worker in self.given_up:
            self._report_released(exited.worker)

    def report_end(self, worker: Worker, exited: protocol.Exited) -> None:
        """Report the end of a worker, which may be there still."""
        if not exited.is_gone:
            self.given_up[worker.id] = worker
        kind = events.Released if exited.is_gone else events.Lost
        self._report(kind(*worker.where))

    def take_agent(self, host: str) -> None:
        """A host has an agent, which has killed what one before it has left."""
        if host in self._unreachable:
            del self._unreachable[host]
            self._report(events.HostReachable(host))
        for worker in [key for key, worker in self.given_up.items() if worker.slot.host == host]:
            self._report_released(worker)

    def lose_agent(self, host: str, lost: Lost) -> None:
        """The agent of a host is gone, or the way to it. Here its workers are gone with it.

        Raises:
            StartError: it is this host's, and has never run.
        """
        is_here = self._agents.is_here(host)
        if is_here and not lost.has_connected:
            said = "\n".join(f"  | {text}" for text in lost.explanation)
            raise StartError(f"the agent of this machine does not start:\n{said}")
        workers = [worker for worker, at in self._hosts.items() if at == host]
        loss = protocol.HostLoss.LOST if lost.has_connected else protocol.HostLoss.UNREACHED
        is_news = is_here or self._unreachable.get(host) != lost.reason
        if not is_here:
            if host not in self._unreachable:
                self._report(events.HostUnreachable(host, lost.reason))
            self._unreachable[host] = lost.reason
        left = {worker: self._processes_of(worker) for worker in workers} if is_here else {}
        processes.kill({process for family in left.values() for process in family})
        for worker in workers:
            if worker not in self._to_end and is_news:
                for text in lost.explanation:
                    self._print_line(worker, text)
            exit_code = KILLED if is_here else HOST_LOST
            is_gone = is_here and not any(map(processes.is_alive, left[worker]))
            is_gone = is_gone or not lost.has_connected
            self.take_end(protocol.Exited(worker, exit_code, is_gone, loss))
        given_up = frozenset(worker for worker in workers if worker in self.given_up)
        if lost.gone_after is not None and given_up:
            self._timers.enter(lost.gone_after, 0, self._release, (given_up,))

    def _release(self, workers: frozenset[int]) -> None:
        """The lease of their agent has ended, and it has killed them."""
        for worker in workers & self.given_up.keys():
            self._report_released(worker)

    def _report_released(self, worker: int) -> None:
        self._report(events.Released(*self.given_up.pop(worker).where))
