"""The shell around `membership`: sockets, processes and clocks in, actions out."""

import logging
import queue
import sched
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

import psutil

from edt_launch.agent.protocol import LEASE, Hello, Probed, Started, Warm
from edt_launch.agent.protocol import Exited as ProcessEnded
from edt_launch.agent.system import processes
from edt_launch.core.errors import HOST_LOST, StartError
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.core.system.ports import PortRange
from edt_launch.core.system.reserved_variables import WORKER_TOKEN
from edt_launch.launcher import watchdog
from edt_launch.launcher.control import ControlServers
from edt_launch.launcher.hosts import reachability
from edt_launch.launcher.hosts.agents import Agents, CheckpointFetched, CheckpointPut, HostEvent, Lost
from edt_launch.launcher.program import Workers
from edt_launch.membership import protocol
from edt_launch.membership.intake import KILLED
from edt_launch.membership.members import WorldLimits
from edt_launch.membership.policy import POLICIES
from edt_launch.membership.protocol import Resize, Worker
from edt_launch.membership.step import FORMED_ANEW
from edt_launch.worlds.world import World
from edt_messages import messages
from edt_messages.messages import Message

log = logging.getLogger(__name__)

TICK = 0.25
"""Seconds between two looks at the clock when nothing else happens."""

READ_INTERVAL = 0.01
"""Seconds from one look to the next whether all that a worker has sent before its end is read."""

END_GRACE = 5.0
"""Seconds that a worker which was asked to end has before it is killed."""

KILL_GRACE = 10.0
"""Seconds in which an agent has to say that a worker is gone which it was told to kill."""

PAUSED = "the job was told to pause"
"""Why workers leave that SIGUSR1 makes leave."""


@dataclass(frozen=True)
class DriverSettings:
    """What a driver goes by. Workers without a device of their own have `visible_devices`; None for none.

    `given_up` are workers of earlier runs whose processes may be there still. `address_of` knows the address
    of another host, `address_towards` that of this machine for workers on given hosts.
    """

    limits: WorldLimits
    workers: Workers
    world: World
    address_towards: Callable[[Iterable[str]], str]
    first_worker: int = 0
    hang_timeout: float | None = None
    grace: float = 30.0
    """Seconds from SIGTERM to SIGKILL of a worker whose job is told to end or to pause."""
    visible_devices: str | None = None
    given_up: Mapping[int, Worker] = field(default_factory=dict)
    address_of: Callable[[str], str | None] = lambda host: None
    max_log_size: int | None = None
    ports: PortRange | None = None
    """To listen on; None for any."""


_Queued = protocol.Event | watchdog.Heartbeat | HostEvent


_HEARD = Hello | Probed | Warm | Started | ProcessEnded | Lost | CheckpointFetched | CheckpointPut


class Driver:
    """Carries out what `membership` decides.

    `sink` takes events; `print_line` puts lines among what workers print to standard error.
    """

    def __init__(
        self,
        settings: DriverSettings,
        agents: Agents,
        sink: Callable[[events.Event], None],
        print_line: Callable[[int, str], None],
    ) -> None:
        self._settings = settings
        self._agents = agents
        self._sink = sink
        self._print_line = print_line
        # A simple queue: many threads put into it.
        self._events: queue.SimpleQueue[_Queued] = queue.SimpleQueue()
        policy = POLICIES[settings.limits.resize]
        self._step = policy.step
        self._state = policy.begin(settings.limits, settings.first_worker)
        self._token = secrets.token_hex(16)
        self._server = ControlServers(self._token, self._receive, settings.ports)
        self._watch = watchdog.Watch(settings.hang_timeout if policy.is_watched else 0.0)
        self._probing = reachability.Probing()
        self._could_not_form = False
        """Whether workers that are all there had to form a world anew, since the last probe."""
        self._world = settings.world
        self._hosts: dict[int, str] = {}
        """Where the workers run whose end has not been reported."""
        self._pids: dict[int, int] = {}
        self._fetching: Counter[int] = Counter()
        """Checkpoints that are being fetched, by the workers that have written them."""
        self.given_up = dict(settings.given_up)
        """Workers whose processes may be there still, those of earlier runs included."""
        self.coordinator_host: str | None = None
        """The host of rank 0 in the latest world; None before the first."""
        self._unreachable: dict[str, str] = {}
        """Hosts whose agent is lost, or cannot be started, and why, at the last attempt."""
        self._to_end: set[int] = set()
        self._timers = sched.scheduler()
        elsewhere = frozenset(key for key, at in self.given_up.items() if not agents.is_here(at.slot.host))
        self._timers.enter(2 * LEASE, 0, self._release, (elsewhere,))
        self._resumption = Resumption()

    def put(self, event: protocol.Event) -> None:
        """Something has happened; may be called from any thread."""
        self._events.put(event)

    def notify(self, event: HostEvent) -> None:
        """Something has happened on a host; may be called from any thread."""
        if isinstance(event.happening, _HEARD):
            self._events.put(event)

    def run(self) -> None:
        """Run the job; returns when its last worker has gone."""
        try:
            while not self._state.finished:
                self._turn()
        finally:
            self.close()

    def close(self) -> None:
        """Give up what it listens on; `run` does so at its end."""
        self._server.close()
        self._world.close()

    def _turn(self) -> None:
        due = self._timers.run(blocking=False)
        try:
            event: _Queued = self._events.get(timeout=TICK if due is None else min(TICK, due))
        except queue.Empty:
            event = protocol.Tick()
        self._timers.run(blocking=False)
        now = time.monotonic()
        self._watch = watchdog.tick(now, self._watch, self._state.workers)
        match event:
            case watchdog.Heartbeat():
                self._watch = watchdog.observe(now, self._watch, event)
            case HostEvent(happening=CheckpointFetched() as fetched):
                self._report_fetched(fetched)
            case HostEvent(happening=CheckpointPut(worker, error)):
                self._go_on_with(worker, error)
            case HostEvent():
                self._take_report(now, event)
            case _:
                self._take(now, event)
        for worker, reason in watchdog.overdue(now, self._watch, self._state.workers.values()):
            self._take(now, protocol.Hung(worker, reason))
        wrong = watchdog.mismatch(now, self._watch, self._state.workers.values())
        if wrong is not None and self._state.outcome is None:
            self._take(now, protocol.Deadlock(wrong))
        self._probe(now)

    def _probe(self, now: float) -> None:
        """Have the agents find out which hosts reach each other, if there is doubt."""
        workers = self._state.workers.values()
        hosts = reachability.hosts_in_doubt(now, self._probing, self._watch, workers, self._could_not_form)
        if hosts:
            self._could_not_form = False
            here = self._settings.address_towards(hosts)
            there = self._settings.address_of
            addresses = {host: here if self._agents.is_here(host) else there(host) for host in hosts}
            known = {host: address for host, address in addresses.items() if address is not None}
            self._probing = reachability.begin(now, self._probing, known)
            self._agents.probe(self._probing.number, known)

    def _take(self, now: float, event: protocol.Event) -> None:
        match event:
            case protocol.Exited():
                self._report_end(event)
            case protocol.Desired(slots) if slots != self._state.desired:
                self._report(events.Desired(len(slots)))
        if isinstance(event, protocol.Desired):
            event = replace(event, slots=self._settings.workers.slots(event.slots))
        self._state, actions = self._step(now, self._state, event)
        for action in actions:
            self._carry_out(action)
        is_fixed = self._state.limits.resize is Resize.FIXED
        if is_fixed and any(isinstance(action, protocol.Start) for action in actions):
            self._report(fixed_world(self._state.workers.values()))
        if isinstance(event, protocol.Desired) and event.generation is not None:
            self._report(events.Following(event.generation))

    def _report(self, event: events.Event) -> None:
        self._sink(stamped(event))

    # What the agents say.

    def _take_report(self, now: float, event: HostEvent) -> None:
        match event.happening:
            case Hello():
                self._note_agent(event.host)
            case Probed(probe, reached):
                self._probing = reachability.answered(self._probing, probe, event.host, reached)
                if self._probing.is_complete:
                    self._leave_out(now)
            case Warm() as warm:
                self._report(events.WarmServer(event.host, **asdict(warm)))
            case Started(worker, pid):
                self._pids[worker] = pid
            case ProcessEnded(worker) if self._server.has_unread(worker):  # `Done` may be among it
                self._timers.enter(READ_INTERVAL, 0, self._events.put, (event,))
            case ProcessEnded(worker, 0) if self._fetching[worker]:  # its last checkpoint is still there
                self._timers.enter(READ_INTERVAL, 0, self._events.put, (event,))
            case ProcessEnded(worker, exit_code, has_begun):
                loss = None if has_begun else protocol.HostLoss.UNFIT
                self._take_end(now, protocol.Exited(worker, exit_code, host_loss=loss))
            case Lost() as lost:
                self._lose(now, event.host, lost)

    def _note_agent(self, host: str) -> None:
        """A host has an agent, which has killed what one before it has left."""
        if host in self._unreachable:
            del self._unreachable[host]
            self._report(events.HostReachable(host))
        for worker in [key for key, worker in self.given_up.items() if worker.slot.host == host]:
            self._report(events.Released(*self.given_up.pop(worker).where))

    def _take_end(self, now: float, exited: protocol.Exited) -> None:
        """A worker has ended, or is given up; one that was given up before may be known to be gone now."""
        if self._hosts.pop(exited.worker, None) is not None:
            self._take(now, exited)
        elif exited.is_gone and exited.worker in self.given_up:
            self._report(events.Released(*self.given_up.pop(exited.worker).where))

    def _report_end(self, exited: protocol.Exited) -> None:
        worker = self._state.workers.get(exited.worker)
        if worker is None:
            return
        if not exited.is_gone:
            self.given_up[worker.id] = worker
        kind = events.Released if exited.is_gone else events.Lost
        self._report(kind(*worker.where))

    def _lose(self, now: float, host: str, lost: Lost) -> None:
        """The agent of a host is gone, or the way to it. Here its workers are gone with it.

        Raises:
            StartError: it is this host's, and has never run.
        """
        if self._agents.is_here(host) and not lost.has_connected:
            said = "\n".join(f"  | {text}" for text in lost.explanation)
            raise StartError(f"the agent of this machine does not start:\n{said}")
        workers = [worker for worker, at in self._hosts.items() if at == host]
        loss = protocol.HostLoss.LOST if lost.has_connected else protocol.HostLoss.UNREACHED
        is_here = self._agents.is_here(host)
        is_news = is_here or self._unreachable.get(host) != lost.reason
        if not is_here and host not in self._unreachable:
            self._report(events.HostUnreachable(host, lost.reason))
        if not is_here:
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
            self._take_end(now, protocol.Exited(worker, exit_code, is_gone, loss))
        given_up = frozenset(worker for worker in workers if worker in self.given_up)
        if lost.gone_after is not None and given_up:
            self._timers.enter(lost.gone_after, 0, self._release, (given_up,))

    def _report_fetched(self, fetched: CheckpointFetched) -> None:
        self._fetching[fetched.worker] -= 1
        if fetched.error is not None:
            self._report(events.CheckpointFailed(fetched.error))
        elif fetched.path is not None:
            self._report(events.Checkpointed(**{**vars(fetched.checkpointed), "path": str(fetched.path)}))

    def _go_on_with(self, worker: int, error: str | None) -> None:
        """A worker has the newest checkpoint; or its host cannot have it, and the others do without it."""
        if error is None:
            self._server.send(worker, messages.CheckpointBrought())
        else:
            self._print_line(worker, f"edt-launch: {error}")
            self._kill(worker)

    def _leave_out(self, now: float) -> None:
        """Treat the workers of hosts that do not reach the others as workers that hang."""
        workers = self._state.workers.values()
        for host, reason in reachability.left_out(self._probing.answers, workers).items():
            for worker in [worker for worker in workers if worker.slot.host == host]:
                self._take(now, protocol.Hung(worker.id, f"rank {worker.rank} is left out: {reason}"))

    def _release(self, workers: frozenset[int]) -> None:
        """The lease of their agent has ended, and it has killed them."""
        for worker in workers & self.given_up.keys():
            self._report(events.Released(*self.given_up.pop(worker).where))

    # What the workers say.

    def _receive(self, worker: int, message: Message) -> None:
        match message:
            case messages.Hello(_, _, pid):
                self._pids[worker] = pid
                if worker in self._to_end:
                    self._server.send(worker, messages.End())  # it was not there yet when this was sent first
            case messages.AtRendezvous(progress):
                self._report(events.Ready(worker, self._pids[worker]))
                self._events.put(protocol.Ready(worker, progress))
            case messages.Heartbeat():
                self._events.put(watchdog.Heartbeat.of(worker, message))
            case messages.Progress() if self._settings.limits.resize is Resize.RESTART_ALL:
                for resumed in self._resumption.observe(time.monotonic(), message):
                    self._report(resumed)
            case _:
                self._take_message(worker, message)

    def _take_message(self, worker: int, message: Message) -> None:
        host = self._hosts.get(worker, "")
        if isinstance(message, messages.ProgramMessage):
            self._settings.workers.receive(message.text)
        elif isinstance(message, messages.CheckpointWanted):
            self._agents.put_checkpoint(host, worker, message.folder)
        elif isinstance(message, messages.Checkpointed) and self._agents.has_own_disk(host):
            self._fetching[worker] += 1
            self._agents.fetch_checkpoint(host, worker, message)
        elif isinstance(message, messages.CheckpointFailed) and self._agents.has_own_disk(host):
            self._report(events.CheckpointFailed(f"{host}: {message.reason}"))
        elif (event := _protocol_event(worker, message)) is not None:
            self._events.put(event)
        elif (reported := events.event_of(worker, message)) is not None:
            self._report(reported)
        else:
            log.info("worker %d has sent a message that is none of a worker: %s", worker, message)

    # What to do.

    def _carry_out(self, action: protocol.Action) -> None:
        log.info("%s", action)
        match action:
            case protocol.Start(worker):
                self._start(worker)
            case protocol.StopWorkers(workers, generation):
                self._report(events.Stopping(generation))
                for worker_id in workers:
                    self._server.send(worker_id, messages.Stop(generation))
            case protocol.Assign():
                self._assign(action)
            case protocol.Dismiss(worker_id, saves):
                self._server.send(worker_id, messages.Leave(saves))
            case protocol.Open(generation, ranks, previous_size, reason):
                self._world.open(generation, ())
                self._resumption.open(generation, previous_size, len(ranks))
                self._report(events.World(generation, len(ranks), previous_size, ranks, reason))
            case protocol.Admit(worker_id, generation):
                self._server.send(worker_id, messages.Admit(generation, self._resumption.step))
            case protocol.Terminate(worker_id, _, float(grace)):
                self._send_sigterm(worker_id, grace)
            case protocol.Terminate(worker_id, at_once):
                self._terminate(worker_id, at_once)
            case protocol.Cut(workers, generation):
                self._cut(workers, generation)
            case events.Event():
                self._report(action)

    def _start(self, worker: Worker) -> None:
        for event in start_events(worker):
            self._report(event)
        self._hosts[worker.id] = worker.slot.host
        try:
            meets_at = self._settings.workers.meets_at(self._state.lineup(worker))
            variables = self._variables(worker)
            command = self._settings.workers.command_of(worker)
            self._agents.start(worker.slot.host, worker.id, variables, meets_at, command)
        except (OSError, StartError) as error:  # a folder of its own cannot be made, say
            self._print_line(worker.id, f"edt-launch: this worker cannot be started: {error}")
            self._events.put(HostEvent(worker.slot.host, ProcessEnded(worker.id, 1)))

    def _variables(self, worker: Worker) -> dict[str, str]:
        settings, slot = self._settings, worker.slot
        hosts = [slot.host for slot in self._state.desired]
        variables = {
            **self._world.variables(worker, hosts),
            "EDT_COORDINATOR": self._server.at(settings.address_towards([slot.host])),
            WORKER_TOKEN: self._token,
            "EDT_WORKER": str(worker.id),
            "EDT_SLOT": str(slot.index),
            "EDT_MIN_NP": str(self._state.limits.min_size),
            "EDT_MAX_NP": str(self._state.limits.max_size),
        }
        if slot.device is not None:
            variables |= {"EDT_DEVICE": slot.device, "CUDA_VISIBLE_DEVICES": slot.device}
        elif settings.visible_devices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = settings.visible_devices
        lineup, address = self._state.lineup(worker), settings.address_towards(hosts)
        return variables | settings.workers.variables_of(worker, lineup, address)

    def _terminate(self, worker: int, at_once: bool) -> None:
        """Ask a worker to end, and make sure of it after a grace.

        The workers of a job that is told to end, or to pause, may end as their program wants; others, which
        have failed or lack a peer, end at once.
        """
        state = self._state
        is_told_to = state.pausing is not None or (state.outcome is not None and state.outcome.aborted)
        if is_told_to and not at_once and worker in self._hosts:
            self._ask_to_end(worker)
            return
        self._report(events.Ending(worker))
        self._to_end.add(worker)
        is_told = self._server.send(worker, messages.End())
        if is_told and not at_once:
            self._timers.enter(END_GRACE, 0, self._kill, (worker,))
        else:
            self._kill(worker)

    def _ask_to_end(self, worker: int) -> None:
        """Have a worker's process get SIGTERM, half of the grace later what it has started, then SIGKILL."""
        grace = self._settings.grace
        self._report(events.Ending(worker, "SIGTERM"))
        if not self._server.send(worker, messages.End(has_grace=True)):
            self._agents.terminate(self._hosts[worker], worker)
        self._timers.enter(grace / 2, 0, self._ask_others_to_end, (worker,))
        self._timers.enter(grace, 0, self._end_grace, (worker,))

    def _ask_others_to_end(self, worker: int) -> None:
        if worker in self._hosts:
            self._agents.terminate(self._hosts[worker], worker, others=True)

    def _end_grace(self, worker: int) -> None:
        if worker in self._hosts:
            text = f"edt-launch: still there {self._settings.grace:g} s after SIGTERM: killed by SIGKILL"
            self._print_line(worker, text)
            self._report(events.Ending(worker, "SIGKILL"))
            self._kill(worker)

    def _send_sigterm(self, worker: int, grace: float) -> None:
        self._report(events.Ending(worker))
        self._to_end.add(worker)
        if worker in self._hosts:
            self._agents.terminate(self._hosts[worker], worker)
            self._timers.enter(grace, 0, self._kill, (worker,))

    def _kill(self, worker: int) -> None:
        if worker in self._hosts:
            self._agents.kill(self._hosts[worker], worker)
            self._timers.enter(KILL_GRACE, 0, self._give_up, (worker,))

    def _give_up(self, worker: int) -> None:
        """The agent does not say that a worker is gone that it was to kill: it may be stopped."""
        if worker not in self._hosts:
            return
        is_here = self._agents.is_here(self._hosts[worker])
        left = self._processes_of(worker) if is_here else set()
        processes.kill(left)
        is_gone = is_here and not any(map(processes.is_alive, left))
        log.info("the agent does not say that worker %d is gone", worker)
        self._take_end(time.monotonic(), protocol.Exited(worker, KILLED, is_gone))

    def _processes_of(self, worker: int) -> set[psutil.Process]:
        ours = {processes.JOB_VARIABLE: self._agents.job}
        known = processes.tree(self._pids[worker]) if worker in self._pids else set()
        is_ours = any(ours.items() <= processes.environment(process).items() for process in known)
        marked = processes.having({WORKER_TOKEN: self._token, "EDT_WORKER": str(worker)})
        return (known if is_ours else set()) | marked

    def _assign(self, action: protocol.Assign) -> None:
        address, port = self._world.open(action.generation, action.assignments)
        ranks = {at.worker: at.rank for at in action.assignments}
        self.coordinator_host = next((at.host for at in action.assignments if at.rank == 0), None)
        self._could_not_form |= action.reason == FORMED_ANEW
        self._report(events.World(action.generation, len(ranks), action.previous_size, ranks, action.reason))
        for at in action.assignments:
            place = {name: value for name, value in vars(at).items() if name != "worker"}
            assign = messages.Assign(**place, generation=action.generation, port=port, address=address)
            self._server.send(at.worker, assign)

    def _cut(self, workers: tuple[int, ...], generation: int) -> None:
        """Let nobody wait for a member that is lost, neither here nor in a collective."""
        self._world.abort()
        for worker in workers:
            self._server.send(worker, messages.Cut(generation))


def _protocol_event(worker: int, message: Message) -> protocol.Event | None:
    match message:
        case messages.Synced():
            return protocol.Synced(worker)
        case messages.Done():
            return protocol.Done(worker)
        case messages.Leaving(reason):
            return protocol.Leaving(worker, reason)
        case messages.Saving(active):
            return protocol.Saving(worker, active)
        case messages.Held():
            return protocol.Held(worker)
    return None


class Resumption:
    """How long no step is done while a world is replaced, from the reports of rank 0."""

    def __init__(self) -> None:
        self.step = 0
        """The last step that was reported."""
        self._at = 0.0
        self._opened: tuple[int, int, int] | None = None

    def open(self, generation: int, before: int | None, size: int) -> None:
        """Another world is in force."""
        self._opened = None if before is None else (generation, before, size)

    def observe(self, now: float, progress: messages.Progress) -> Iterator[events.Event]:
        """The events that a report of a step means."""
        if self._opened is not None and self.step:
            generation, before, size = self._opened
            yield events.Resumed(generation, before, size, now - self._at)
        self.step, self._at, self._opened = progress.step, now, None
        yield events.Progress(**vars(progress))


def start_events(worker: Worker) -> list[events.Started]:
    """The events of a worker that is being started: one for each of its devices."""
    devices = [None] if worker.slot.device is None else worker.slot.device.split(",")
    return [events.Started(*worker.where[:3], device, worker.rank) for device in devices]


def fixed_world(workers: Collection[Worker]) -> events.World:
    """The event of a world whose members know one another without our help."""
    ranks = {worker.id: worker.rank for worker in workers}
    return events.World(0, len(ranks), None, ranks, "all processes have been started")
