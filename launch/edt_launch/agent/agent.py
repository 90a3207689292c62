"""The process on a host that starts a job's workers, passes on what they print, and ends them.

It hears from its launcher on standard input and answers on standard output, see `protocol`; `workers`
decides what to do. This process holds no code of users. It has one thread, which waits for nobody.

What finds and kills processes is imported when it is needed, because importing it takes time.
"""

import contextlib
import os
import selectors
import socket
import sys
import time
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from edt_launch.agent import devices, forkable, protocol, workers
from edt_launch.agent.conversation import Conversation
from edt_launch.agent.network.probing import Prober
from edt_launch.agent.ports import reserve_port
from edt_launch.agent.printing import Printing
from edt_launch.agent.system import subreaper
from edt_launch.agent.transfer.places import Places, merged
from edt_launch.agent.warm import CHUNK, WarmServer, open_log
from edt_launch.agent.worker import Worker
from edt_launch.agent.workers import Do, Verb
from edt_launch.core.errors import StartError
from edt_launch.core.system import ports
from edt_messages import forking
from edt_messages.runs import BROUGHT

if TYPE_CHECKING:
    from edt_launch.agent.transfer.files import Files
    from edt_launch.agent.usage import UsageMeter

SNAPSHOTS = "EDT_SNAPSHOTS"
"""Names a folder in memory in which workers keep what is to outlive them, but not the job."""

ATTEMPTS = 2
"""Warm servers that are asked for a worker: one may be ending at the very moment that it is asked."""

USAGE_INTERVAL = 10.0
"""Seconds between two measurements of what the workers use."""

FLUSH_TIMEOUT = 5.0
"""Seconds that the launcher has at the end to read what is still to be sent."""


class Agent:
    """An agent with the descriptors over which it talks to its launcher."""

    _setup: protocol.Setup  # the first order

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._reader: protocol.Reader[protocol.Order] = protocol.Reader(protocol.Order)
        self._conversation = Conversation(checks_reports=False)
        self._unsent = bytearray()
        self._environment: dict[str, str] = {}
        self._command: tuple[str, ...] = ()
        self._directory: str | None = None
        """Where workers start; None for where this process is, as on a host without the folder."""
        self._places = Places({})
        self._files: Files | None = None
        """None if this host sees the output directory."""
        self._program: forkable.Program | None = None
        self._state = workers.State(can_fork=False)
        self._workers: dict[int, Worker] = {}
        self._children: dict[int, int] = {}
        """Workers by process, of those that are our children or may become that."""
        self._server: WarmServer | None = None
        self._failed_warm_servers = 0
        """Warm servers that have ended before they could fork."""
        self._selector = selectors.DefaultSelector()
        self._printing = Printing(self._selector, self._send, self._take)
        self._prober = Prober(self._selector, self._send)
        self._meter: UsageMeter | None = None
        """None before the first worker."""
        self._measured_at = 0.0

    def run(self) -> None:
        """Serve until the launcher is gone, and every worker with it."""
        for descriptor in (self._reading, self._writing):
            os.set_blocking(descriptor, False)
        with subreaper.woken_by_children() as wakeup:
            self._selector.register(self._reading, selectors.EVENT_READ, self._hear)
            self._selector.register(wakeup, selectors.EVENT_READ, lambda: wakeup.recv(CHUNK))
            while not self._state.is_over:
                self._turn()
            if self._meter is not None:
                self._meter.close()
            self._send(protocol.Swept(self._sweep()))
        if folder := self._environment.get(SNAPSHOTS):
            import shutil

            shutil.rmtree(folder, ignore_errors=True)  # it is there only if a worker has made it
        if self._files is not None:
            self._files.close()
        self._flush()

    def _turn(self) -> None:
        due, measuring = workers.deadline(self._state), self._measuring_at
        first = min((at for at in (due, self._prober.deadline, measuring) if at is not None), default=None)
        timeout = None if first is None else max(0.0, first - time.monotonic())
        for key, mask in self._selector.select(timeout):
            if mask & selectors.EVENT_READ and not self._state.is_over:
                key.data()
        self._reap()
        if due is not None and time.monotonic() >= due:
            self._tick()
        self._prober.tick()
        if measuring is not None and time.monotonic() >= measuring:
            self._measure()
        self._send_rest()

    @property
    def _measuring_at(self) -> float | None:
        """When what the workers use is measured next; None without any."""
        return self._measured_at + USAGE_INTERVAL if self._workers else None

    def _measure(self) -> None:
        if self._meter is None:
            from edt_launch.agent.usage import UsageMeter

            self._meter = UsageMeter()
        self._measured_at = now = time.monotonic()
        devices = [worker.environment.get("CUDA_VISIBLE_DEVICES", "") for worker in self._workers.values()]
        gpus = dict.fromkeys(
            device for devices_of_one in devices for device in devices_of_one.split(",") if device
        )
        if (usage := self._meter.measure(now, gpus)) is not None:
            self._send(usage)

    def _tick(self) -> None:
        from edt_launch.agent.system import processes

        silent = workers.silent(self._state)
        living = frozenset(worker for worker, pid in silent.items() if processes.is_running(pid))
        left = workers.lingering(self._state).items()
        lingering = frozenset(worker for worker, pid in left if processes.of_worker(worker, pid))
        self._take(workers.Tick(living | lingering))

    # The launcher.

    def _hear(self) -> None:
        try:
            data = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        try:
            for order in self._reader.feed(data):
                self._conversation.order(order)
                self._obey(order)
        except protocol.ProtocolError as error:
            print(f"edt agent: the launcher has sent {error}", file=sys.stderr, flush=True)
            data = b""
        if not data:
            self._take(workers.Closed())

    def _obey(self, order: protocol.Order) -> None:
        match order:
            case protocol.Setup():
                self._set_up(order)
            case protocol.Start() | protocol.Terminate() | protocol.Kill() | protocol.Renew():
                self._take(order)
            case protocol.Reserve():
                self._reserve()
            case protocol.Listen():
                self._listen()
            case protocol.Probe():
                self._prober.begin(order)
            case protocol.WindowUpdate(size):
                self._printing.taken(size)
            case protocol.Close():
                self._take(workers.Closed())
            case protocol.Code() | protocol.Put() | protocol.Piece() | protocol.Fetch() | protocol.List():
                self._obey_about_files(order)

    def _reserve(self) -> None:
        try:
            self._send(protocol.Reserved(reserve_port(ports=ports.range_in(self._environment))))
        except StartError as error:
            sys.exit(f"edt agent: {error}")

    def _listen(self) -> None:
        try:
            self._send(protocol.Listening(self._prober.listen(ports.range_in(self._environment))))
        except StartError as error:  # then nobody finds out whether this host is reached; workers go on
            print(f"edt agent: {error}", file=sys.stderr, flush=True)

    def _obey_about_files(self, order: protocol.FileOrder) -> None:
        if self._files is None:
            what = type(order).__name__
            raise protocol.ProtocolError(f"{what}, though this host sees the output directory")
        match order:
            case protocol.Code(folder):
                self._places = Places(
                    {**self._places.moved, **({folder: str(self._files.code)} if folder else {})}
                )
                if self._files.have_code(order):
                    self._begin()
            case protocol.Put():
                self._files.put(order)
            case protocol.Piece():
                self._files.take(order)
            case protocol.Fetch():
                self._files.fetch(order)
            case protocol.List():
                self._files.list()

    def _set_up(self, setup: protocol.Setup) -> None:
        self._setup = setup
        self._environment = dict(setup.environment)
        if setup.inherits:
            pythons = (setup.python, sys.executable)
            self._environment = merged(os.environ, setup.environment, pythons, os.path.isdir)
        if setup.sweeps:
            from edt_launch.agent.system import processes

            try:
                left = processes.sweep_host(setup.environment)
            except processes.LaterRunError as error:
                sys.exit(f"edt agent: {error}")
            if left:
                numbers = ", ".join(sorted(str(process.pid) for process in left))
                sys.exit(f"edt agent: processes that an earlier agent has left cannot be ended: {numbers}")
        now = time.monotonic()
        lease = None if setup.lease is None else workers.Lease(setup.lease, renewed_at=now, heartbeat_at=now)
        self._state = workers.State(can_fork=False, lease=lease)
        self._open_files(setup)
        folder = str(self._files.output) if self._files is not None else None
        self._send(protocol.Hello(protocol.VERSION, os.getpid(), folder))
        if self._files is None:
            self._begin()

    def _open_files(self, setup: protocol.Setup) -> None:
        """Have a folder for the job, if this host does not see the output directory."""
        if setup.output is None:
            return
        from edt_launch.agent.transfer import files

        if files.sees(os.path.join(setup.output, protocol.NONCE), setup.nonce):
            return
        host = setup.environment["HOROVOD_HOSTNAME"]
        try:
            self._files = files.Files(self._environment, host, self._send)
        except OSError as error:
            sys.exit(f"edt agent: no folder for the job can be made: {error.filename}: {error.strerror}")
        self._places = Places({setup.output: str(self._files.output)})

    def _begin(self) -> None:
        """Everything is here that workers need: get ready to start them."""
        setup = self._setup
        self._directory = self._directory_here(setup.directory)
        self._command = self._here(setup.command)
        self._environment = self._places.environment(self._environment)
        try:
            self._environment |= ports.preloaded(self._environment)
        except StartError as error:
            sys.exit(f"edt agent: {error}")
        if self._files is not None:
            self._environment |= {"PWD": self._directory or os.getcwd(), BROUGHT: "1"}
        program = forkable.parse(self._command) if setup.forks and sys.platform == "linux" else None
        script = os.path.join(self._directory or "", program.script or "") if program is not None else ""
        # A script that is not there is the interpreter's to report.
        if program is not None and (program.module or os.path.isfile(script)):
            self._program = program
            self._start_server()
        self._state = replace(self._state, can_fork=self._server is not None)

    def _directory_here(self, directory: str) -> str | None:
        here = self._places.path(directory)
        if not self._setup.inherits or os.path.isdir(here):
            return here
        if self._files is not None and self._files.code.is_dir():
            return str(self._files.code)
        return None

    def _here(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command as this host runs it."""
        if not self._setup.inherits:
            return command
        own = tuple(sys.executable if word == self._setup.python else word for word in command[:1])
        rest = self._places.words(command[1:], self._setup.directory, os.path.exists)
        return (*own, *rest)

    def _why_not(self, program: str, error: OSError | ValueError) -> str:
        path = os.path.join(self._directory or "", program)
        if isinstance(error, FileNotFoundError) and "/" in program and os.path.exists(path):
            return "the interpreter that it names in its first line is not there"
        return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

    def _send(self, report: protocol.Report) -> None:
        self._unsent += protocol.write(report)
        self._write()

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                while self._unsent:
                    del self._unsent[: os.write(self._writing, self._unsent)]
            except (BrokenPipeError, ConnectionResetError):  # the end of the other direction tells the rest
                self._unsent.clear()

    def _send_rest(self) -> None:
        self._write()
        is_awaited = self._writing in self._selector.get_map()
        if self._unsent and not is_awaited:
            self._selector.register(self._writing, selectors.EVENT_WRITE)
        elif is_awaited and not self._unsent:
            self._selector.unregister(self._writing)
        for request in (worker.request for worker in self._workers.values()):
            if request is not None:
                key = self._selector.get_key(request.connection)
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if request.send() else 0)
                if key.events != wanted:
                    self._selector.modify(request.connection, wanted, key.data)

    def _flush(self) -> None:
        deadline = time.monotonic() + FLUSH_TIMEOUT
        while self._unsent and time.monotonic() < deadline:
            self._write()
            time.sleep(0.01 if self._unsent else 0)

    def _stop_hearing(self) -> None:
        """Take no more orders: the launcher is gone, or counts as such."""
        if self._reading in self._selector.get_map():
            self._selector.unregister(self._reading)
            self._close_server(kill=True)  # then its workers are our children

    # Decisions.

    def _take(self, event: workers.Event) -> None:
        if isinstance(event, protocol.Start) and event.worker not in self._workers:
            self._workers[event.worker] = worker = self._worker_of(event)
            self._printing.begin(event.worker, worker.reading)
        self._state, actions = workers.step(time.monotonic(), self._state, event)
        if self._state.is_closing:
            self._stop_hearing()
        for action in actions:
            if isinstance(action, Do):
                self._carry_out(action)
            else:
                self._send(action)

    def _worker_of(self, order: protocol.Start) -> Worker:
        own = self._places.environment(order.environment)
        return Worker({**self._environment, **own}, self._here(order.command) or self._command)

    def _carry_out(self, action: Do) -> None:
        number, worker = action.worker, self._workers[action.worker]
        match action.verb:
            case Verb.FORK | Verb.EXECUTE if (lacking := self._lacking(worker)) is not None:
                self._give_up(number, worker, lacking)
            case Verb.FORK:
                self._fork(number, worker)
            case Verb.EXECUTE:
                self._execute(number, worker, action.reason)
            case Verb.RELEASE:
                worker.release()
            case Verb.TERMINATE | Verb.TERMINATE_OTHERS:
                self._terminate(number, others=action.verb is Verb.TERMINATE_OTHERS)
            case Verb.KILL:
                self._kill(number)
            case Verb.CLOSE_LIFELINE:
                self._close_lifeline(worker)
            case Verb.FORGET:
                self._forget(number, worker)

    def _execute(self, number: int, worker: Worker, reason: str) -> None:
        self._close_request(worker)
        if reason:
            self._printing.note(number, f"{reason}; this worker starts without it")
        if self._directory is None:
            where = f"{self._setup.directory} is not on this host; this worker starts in {os.getcwd()}"
            self._printing.note(number, where)
        try:
            process = worker.execute(self._directory)
        except (OSError, ValueError) as error:
            program = worker.command[0]
            self._give_up(number, worker, f"cannot run {program}: {self._why_not(program, error)}")
            return
        worker.close_its_ends()
        process.returncode = 0  # `_reap` waits for it
        self._children[process.pid] = number
        self._take(workers.Running(number, process.pid))

    def _lacking(self, worker: Worker) -> str | None:
        """What the host lacks that the worker needs; None if nothing is known to be missing."""
        host, given = worker.environment.get("HOROVOD_HOSTNAME", ""), worker.environment.get("EDT_DEVICE")
        if given is not None and (problem := devices.problem(host, given, devices.count())) is not None:
            return problem
        program = forkable.parse(worker.command) if self._setup.inherits else None
        if program is None or program.script is None:
            return None
        script = os.path.join(self._directory or "", program.script)
        if os.path.isfile(script):
            return None
        folder = self._setup.directory
        if self._directory is None and PurePath(folder, program.script).is_relative_to(folder):
            return f"{host} has no folder {folder}: share it, or copy it to that host"
        return f"{host} has no {script}: put it on that host, too"

    def _give_up(self, number: int, worker: Worker, reason: str) -> None:
        self._printing.note(number, reason)
        worker.close_its_ends()
        self._take(workers.Gone(number, workers.NOT_FOUND))

    # The warm server.

    def _start_server(self) -> None:
        assert self._program is not None
        log = open_log(self._setup.log)
        try:
            server = WarmServer(self._program, self._command, self._environment, self._directory, log)
        except OSError as error:
            print(f"edt agent: no warm server: {error}", file=sys.stderr, flush=True)
            return
        finally:
            os.close(log)
        self._server = server
        self._selector.register(server.channel, selectors.EVENT_READ, self._hear_server)

    def _hear_server(self) -> None:
        assert self._server is not None
        said = self._server.hear()
        if said is None:
            self._failed_warm_servers += not self._server.is_ready
            self._close_server()
            return
        for imported in said:
            self._send(protocol.Warm(self._server.process.pid, **vars(imported)))
            if imported.refused is not None:
                self._failed_warm_servers = ATTEMPTS
                self._close_server()

    def _close_server(self, kill: bool = False) -> None:
        if self._server is not None:
            if kill:
                self._server.process.kill()
            self._server.process.returncode = 0  # `_reap` waits for it
            self._close(self._server.channel)
            self._server = None

    def _fork(self, number: int, worker: Worker) -> None:
        while worker.attempts < ATTEMPTS:
            worker.attempts += 1
            if self._server is None and self._failed_warm_servers < ATTEMPTS:
                self._start_server()
            if self._server is None:
                break
            try:
                worker.request = self._server.request(worker.environment, worker.command)
            except OSError:
                self._close_server()
                continue
            self._selector.register(
                worker.request.connection, selectors.EVENT_READ, lambda: self._hear_request(number, worker)
            )
            return
        self._take(workers.Refused(number))

    def _hear_request(self, number: int, worker: Worker) -> None:
        if worker.request is None:  # closed in the same turn
            return
        answers = worker.request.answers()
        if answers is None:
            self._close_request(worker)
            if self._state.processes[number].phase is workers.ProcessPhase.ASKED:
                self._fork(number, worker)  # from another server
            return
        for answer in answers:
            try:
                self._take_answer(number, worker, answer)
            except (OSError, ValueError) as error:  # whatever the program's imports have made of the server
                print(f"edt agent: {answer} of the warm server makes no sense: {error}", file=sys.stderr)
                self._close_request(worker)
                self._take(workers.Refused(number))
                return

    def _take_answer(self, number: int, worker: Worker, answer: forking.Message) -> None:
        """Raises OSError or ValueError: there is no such answer, or not now."""
        process = self._state.processes.get(number)
        match answer, process.phase if process is not None else None:
            case forking.Ready(), workers.ProcessPhase.ASKED:
                worker.give()
            case forking.Forked(pid), workers.ProcessPhase.ASKED:
                worker.close_its_ends()
                self._children[pid] = number
                self._watch_lifeline(number, worker)
                self._take(workers.Running(number, pid, is_forked=True))
            case forking.Exited(status), workers.ProcessPhase.RUNNING:
                self._take(workers.Gone(number, os.waitstatus_to_exitcode(status)))
            case _, None | workers.ProcessPhase.ENDED:
                pass  # too late
            case _, phase:
                raise ValueError(f"the worker is {phase}")

    def _watch_lifeline(self, number: int, worker: Worker) -> None:
        def hear() -> None:
            if worker.lifeline.fileno() >= 0 and not worker.hear():  # else closed in the same turn
                self._close(worker.lifeline)
                self._take(workers.LifelineEnded(number, worker.exit_code_said))

        worker.lifeline.setblocking(False)
        self._selector.register(worker.lifeline, selectors.EVENT_READ, hear)

    # Ends.

    def _reap(self) -> None:
        for pid, exit_code in subreaper.reap():
            if (worker := self._children.pop(pid, None)) is not None:
                self._take(workers.Gone(worker, exit_code))
            elif self._files is not None and self._files.unpacked(pid):
                self._begin()

    def _terminate(self, number: int, *, others: bool) -> None:
        from edt_launch.agent.system import processes

        processes.terminate_worker(number, self._state.processes[number].pid, others=others)

    def _kill(self, number: int) -> None:
        from edt_launch.agent.system import processes

        process = self._state.processes.get(number)
        processes.kill_worker(number, process.pid if process is not None else None)

    def _sweep(self) -> int:
        """End what the workers have left; returns how many processes had to be killed."""
        self._reap()
        if not subreaper.has_children():
            return 0
        from edt_launch.agent.system import processes

        return processes.sweep_descendants(workers.LEFTOVER_GRACE)

    def _close(self, connection: socket.socket) -> None:
        """Hear no more from a socket, which may be closed already."""
        if connection.fileno() >= 0:
            if connection in self._selector.get_map():
                self._selector.unregister(connection)
            connection.close()

    def _close_request(self, worker: Worker) -> None:
        if worker.request is not None:
            self._close(worker.request.connection)
            worker.request = None

    def _close_lifeline(self, worker: Worker) -> None:
        self._close_request(worker)
        worker.close_its_ends()
        self._close(worker.lifeline)

    def _forget(self, number: int, worker: Worker) -> None:
        del self._workers[number]
        self._close_lifeline(worker)
        self._printing.end(number)
        self._children = {pid: other for pid, other in self._children.items() if other != number}
