"""The shell around `membership`: sockets, processes and clocks in, actions out."""

import contextlib
import logging
import queue
import sched
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from edt_launch.agent.protocol import Exited as ProcessEnded
from edt_launch.agent.protocol import Hello, Probed, Started, Warm
from edt_launch.core.errors import StartError
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.core.system.ports import PortRange
from edt_launch.core.system.reserved_variables import WORKER_TOKEN
from edt_launch.launcher import watchdog
from edt_launch.launcher.control import ControlServers
from edt_launch.launcher.driver.host_probes import HostProbes
from edt_launch.launcher.driver.launched_workers import LaunchedWorkers
from edt_launch.launcher.driver.resumption import Resumption
from edt_launch.launcher.hosts.agents import Agents
from edt_launch.launcher.hosts.host_events import CheckpointFetched, CheckpointPut, HostEvent, Lost
from edt_launch.launcher.program import Workers
from edt_launch.membership import protocol
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

RECONNECT_INTERVALS = {True: 1.0, False: 5.0}
"""Seconds from the loss of an agent of another host to the next one, and from an attempt that has failed."""

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
        self._probes = HostProbes(agents, settings.address_towards, settings.address_of)
        self._world = settings.world
        self._fetching: Counter[int] = Counter()
        """Checkpoints that are being fetched, by the workers that have written them."""
        self.coordinator_host: str | None = None
        """The host of rank 0 in the latest world; None before the first."""
        self._timers = sched.scheduler()
        self._launched = LaunchedWorkers(
            agents,
            self._server,
            self._token,
            self._timers,
            settings.grace,
            settings.given_up,
            self._report,
            print_line,
            lambda exited: self._take(time.monotonic(), exited),
        )
        self._resumption = Resumption()

    @property
    def given_up(self) -> Mapping[int, Worker]:
        """Workers whose processes may be there still, those of earlier runs included."""
        return self._launched.given_up

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
            case protocol.Exited():
                self._launched.take_end(event)
            case _:
                self._take(now, event)
        for worker, reason in watchdog.overdue(now, self._watch, self._state.workers.values()):
            self._take(now, protocol.Hung(worker, reason))
        wrong = watchdog.mismatch(now, self._watch, self._state.workers.values())
        if wrong is not None and self._state.outcome is None:
            self._take(now, protocol.Deadlock(wrong))
        self._probes.tick(now, self._watch, self._state.workers.values())

    def _take(self, now: float, event: protocol.Event) -> None:
        match event:
            case protocol.Exited(worker_id) if (worker := self._state.workers.get(worker_id)) is not None:
                self._launched.report_end(worker, event)
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
                self._launched.take_agent(event.host)
            case Probed(probe, reached):
                workers = self._state.workers.values()
                for hung in [*self._probes.answered(probe, event.host, reached, workers)]:
                    self._take(now, hung)
            case Warm() as warm:
                self._report(events.WarmServer(event.host, **asdict(warm)))
            case Started(worker, pid):
                self._launched.has_process(worker, pid)
            case ProcessEnded(worker) if self._server.has_unread(worker):  # `Done` may be among it
                self._timers.enter(READ_INTERVAL, 0, self._events.put, (event,))
            case ProcessEnded(worker, 0) if self._fetching[worker]:  # its last checkpoint is still there
                self._timers.enter(READ_INTERVAL, 0, self._events.put, (event,))
            case ProcessEnded(worker, exit_code, has_begun):
                loss = None if has_begun else protocol.HostLoss.UNFIT
                # Its last messages may be queued behind this event, and count before its end.
                self._events.put(protocol.Exited(worker, exit_code, host_loss=loss))
            case Lost() as lost:
                self._launched.lose_agent(event.host, lost)
                if not self._agents.is_here(event.host):
                    interval = RECONNECT_INTERVALS[lost.has_connected]
                    self._timers.enter(interval, 0, self._reconnect, (event.host,))

    def _reconnect(self, host: str) -> None:
        """Have an agent with everything imported by when the slots of a lost host are used again."""
        is_ending = self._state.outcome is not None or self._state.pausing is not None
        if not is_ending and any(slot.host == host for slot in self._state.desired):
            with contextlib.suppress(StartError):  # the next worker there tells why
                self._agents.open(host)

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
            self._launched.kill(worker)

    # What the workers say.

    def _receive(self, worker: int, message: Message) -> None:
        match message:
            case messages.Hello(_, _, pid):
                self._launched.has_connected(worker, pid)
            case messages.AtRendezvous(progress):
                self._report(events.Ready(worker, self._launched.pid_of(worker)))
                self._events.put(protocol.Ready(worker, progress))
            case messages.Heartbeat():
                self._events.put(watchdog.Heartbeat.of(worker, message))
            case messages.Progress() if self._settings.limits.resize is Resize.RESTART_ALL:
                for resumed in self._resumption.observe(time.monotonic(), message):
                    self._report(resumed)
            case _:
                self._take_message(worker, message)

    def _take_message(self, worker: int, message: Message) -> None:
        host = self._launched.host_of(worker) or ""
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
                self._launched.send_sigterm(worker_id, grace)
            case protocol.Terminate(worker_id, at_once):
                self._terminate(worker_id, at_once)
            case protocol.Cut(workers, generation):
                self._cut(workers, generation)
            case events.Event():
                self._report(action)

    def _start(self, worker: Worker) -> None:
        self._launched.announce(worker)
        try:
            meets_at = self._settings.workers.meets_at(self._state.lineup(worker))
            variables = self._variables(worker)
            command = self._settings.workers.command_of(worker)
            self._launched.start(worker, variables, meets_at, command)
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
        if is_told_to and not at_once and self._launched.host_of(worker) is not None:
            self._launched.ask_to_end(worker)
        else:
            self._launched.end(worker, at_once=at_once)

    def _assign(self, action: protocol.Assign) -> None:
        address, port = self._world.open(action.generation, action.assignments)
        ranks = {at.worker: at.rank for at in action.assignments}
        self.coordinator_host = next((at.host for at in action.assignments if at.rank == 0), None)
        if action.reason == FORMED_ANEW:
            self._probes.world_failed()
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


def fixed_world(workers: Collection[Worker]) -> events.World:
    """The event of a world whose members know one another without our help."""
    ranks = {worker.id: worker.rank for worker in workers}
    return events.World(0, len(ranks), None, ranks, "all processes have been started")
