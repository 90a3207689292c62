"""The process on a host that starts a job's workers, passes on what they print, and ends them.

It hears from its launcher on standard input and answers on standard output, see `protocol`; `workers`
decides what to do. This process holds no code of users. It has one thread, which waits for nobody.
"""

import contextlib
import os
import selectors
import sys
import time
from collections.abc import Callable
from typing import Any

from edt_launch.agent import endings, forkable, workers
from edt_launch.agent.printing import Printing
from edt_launch.agent.protocol import (
    VERSION,
    Hello,
    Kill,
    Order,
    ProtocolError,
    Reader,
    Report,
    Setup,
    Start,
    Swept,
    Taken,
    Warm,
    write,
)
from edt_launch.agent.subreaper import drain, woken_by_children
from edt_launch.agent.warm import CHUNK, WarmServer, open_log
from edt_launch.agent.worker import Worker

ATTEMPTS = 2
"""Warm servers that are asked for a worker: one may be ending at the very moment that it is asked."""

FLUSH_TIMEOUT = 5.0
"""Seconds that the launcher has at the end to read what is still to be sent."""

Call = Callable[[], None]


class Agent:
    """An agent with the descriptors over which it talks to its launcher."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._reader = Reader.of_orders()
        self._unsent = bytearray()
        self._setup: Setup | None = None
        self._environment: dict[str, str] = {}
        self._program: forkable.Program | None = None
        self._state = workers.State(can_fork=False)
        self._workers: dict[int, Worker] = {}
        self._children: dict[int, int] = {}
        """Workers by process, of those that are our children or may become that."""
        self._server: WarmServer | None = None
        self._stillborn = 0
        """Warm servers that have ended before they could fork."""
        self._selector = selectors.DefaultSelector()
        self._printing = Printing(self._selector, self._send, self._take)
        self._is_over = False

    def run(self) -> None:
        """Serve until the launcher is gone, and every worker with it."""
        for descriptor in (self._reading, self._writing):
            os.set_blocking(descriptor, False)
        with woken_by_children() as wakeup:
            self._selector.register(self._reading, selectors.EVENT_READ, self._hear)
            self._selector.register(wakeup, selectors.EVENT_READ, lambda: drain(wakeup))
            while not self._is_over:
                self._turn()
            self._send(Swept(endings.sweep(workers.LEFTOVER_GRACE)))
        self._flush()

    def _turn(self) -> None:
        """Wait for something to happen, and do what follows."""
        due = workers.deadline(self._state)
        timeout = None if due is None else max(0.0, due - time.monotonic())
        for key, mask in self._selector.select(timeout):
            if mask & selectors.EVENT_WRITE:
                self._write(key.fileobj)
            if mask & selectors.EVENT_READ and not self._is_over:
                key.data()
        self._reap()
        if due is not None and time.monotonic() >= due:
            silent = workers.silent(self._state)
            living = frozenset(worker for worker, pid in silent.items() if endings.is_running(pid))
            self._take(workers.Tick(living))
        self._watch_writing()

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
                self._obey(order)
        except ProtocolError as error:
            print(f"edt agent: the launcher has sent {error}", file=sys.stderr, flush=True)
            data = b""
        if not data:
            self._selector.unregister(self._reading)
            self._close_server(kill=True)  # then its workers are our children
            self._take(workers.Closed())

    def _obey(self, order: Order) -> None:
        match order:
            case Setup():
                self._set_up(order)
            case Start() | Kill():
                self._take(order)
            case Taken(size):
                self._printing.taken(size)

    def _set_up(self, setup: Setup) -> None:
        self._setup = setup
        inherited = dict(os.environ) if setup.inherits else {}
        self._environment = {**inherited, **setup.environment}
        if setup.sweeps:
            endings.sweep_job(setup.environment)
        self._send(Hello(VERSION, os.getpid()))
        program = forkable.parse(setup.command) if setup.forks and sys.platform == "linux" else None
        # A script that is not there is the interpreter's to report.
        if program is not None and (program.module or os.path.isfile(self._path(program.script))):
            self._program = program
            self._start_server()
        self._state = workers.State(can_fork=self._server is not None)

    def _path(self, script: str | None) -> str:
        return os.path.join(self._directory or "", script or "")

    @property
    def _directory(self) -> str | None:
        """Where workers start; None for where this process is, as on a host without the folder."""
        assert self._setup is not None
        folder = self._setup.directory
        return None if self._setup.inherits and not os.path.isdir(folder) else folder

    def _send(self, report: Report) -> None:
        self._unsent += write(report)
        self._write_launcher()

    def _write_launcher(self) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                while self._unsent:
                    del self._unsent[: os.write(self._writing, self._unsent)]
            except (BrokenPipeError, ConnectionResetError):  # the end of the other direction tells the rest
                self._unsent.clear()

    def _flush(self) -> None:
        """Send the rest."""
        deadline = time.monotonic() + FLUSH_TIMEOUT
        while self._unsent and time.monotonic() < deadline:
            self._write_launcher()
            time.sleep(0.01 if self._unsent else 0)

    # Decisions.

    def _take(self, event: workers.Event) -> None:
        if isinstance(event, Start) and event.worker not in self._workers:
            self._workers[event.worker] = worker = Worker({**self._environment, **event.environment})
            self._printing.begin(event.worker, worker.reading)
        self._state, actions = workers.step(time.monotonic(), self._state, event)
        for action in actions:
            self._carry_out(action)

    def _carry_out(self, action: workers.Action) -> None:
        match action:
            case workers.Fork(worker):
                self._fork(worker)
            case workers.Execute(worker, reason):
                self._execute(worker, reason)
            case workers.Release(worker):
                self._workers[worker].release()
            case workers.KillAll(worker):
                process = self._state.processes.get(worker)
                endings.kill_worker(worker, process.pid if process is not None else None)
            case workers.CloseLifeline(worker):
                self._close_lifeline(self._workers[worker])
            case workers.Forget(worker):
                self._forget(worker)
            case workers.Send(report):
                self._send(report)
            case workers.End():
                self._is_over = True

    def _execute(self, number: int, reason: str) -> None:
        assert self._setup is not None
        worker, command = self._workers[number], self._setup.command
        self._close_request(worker)
        if reason:
            worker.note(f"{reason}; this worker starts without it")
        if self._directory is None:
            worker.note(f"{self._setup.directory} is not on this host; this worker starts in {os.getcwd()}")
        try:
            process = worker.execute(command, self._directory)
        except (OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else str(error)
            worker.note(f"cannot run {command[0]}: {told}")
            worker.close_its_ends()
            self._take(workers.NotExecuted(number))
            return
        worker.close_its_ends()
        process.returncode = 0  # `_reap` waits for it
        self._children[process.pid] = number
        self._take(workers.Executed(number, process.pid))

    # The warm server.

    def _start_server(self) -> None:
        assert self._setup is not None
        assert self._program is not None
        log = open_log(self._setup.log)
        try:
            server = WarmServer(self._program, self._setup.command, self._environment, self._directory, log)
        except OSError as error:
            print(f"edt agent: no warm server: {error}", file=sys.stderr, flush=True)
            return
        finally:
            os.close(log)
        self._server = server
        self._selector.register(server.channel, selectors.EVENT_READ, self._hear_server)

    def _hear_server(self) -> None:
        assert self._server is not None
        told = self._server.hear()
        if told is None:
            self._stillborn += not self._server.is_ready
            self._close_server()
        elif told:
            pid = self._server.process.pid
            warm = Warm(pid, told["seconds"], tuple(told["imports"]), told["private"], told["refused"])
            self._send(warm)
            if warm.refused is not None:
                self._stillborn = ATTEMPTS
                self._close_server()

    def _close_server(self, kill: bool = False) -> None:
        if self._server is not None:
            if kill:
                self._server.process.kill()
            self._server.process.returncode = 0  # `_reap` waits for it
            self._selector.unregister(self._server.channel)
            self._server.close()
            self._server = None

    def _fork(self, number: int) -> None:
        worker = self._workers[number]
        while worker.attempts < ATTEMPTS:
            worker.attempts += 1
            if self._server is None and self._stillborn < ATTEMPTS:
                self._start_server()
            if self._server is None:
                break
            try:
                worker.request = self._server.request(worker.environment)
            except OSError:
                self._close_server()
                continue
            self._selector.register(
                worker.request.connection, selectors.EVENT_READ, lambda: self._hear_request(number)
            )
            return
        self._take(workers.Refused(number))

    def _hear_request(self, number: int) -> None:
        worker = self._workers.get(number)
        if worker is None or worker.request is None:  # closed in the same turn
            return
        answers = worker.request.answers()
        if answers is None:
            self._close_request(worker)
            if self._state.processes[number].phase is workers.Phase.ASKED:
                self._fork(number)  # from another server
            return
        for answer in answers:
            match answer:
                case {"ready": True}:
                    worker.give()
                case {"pid": int(pid)}:
                    worker.close_its_ends()
                    self._children[pid] = number
                    self._watch_lifeline(number, worker)
                    self._take(workers.Forked(number, pid))
                case {"status": int(status)}:
                    self._take(workers.Gone(number, os.waitstatus_to_exitcode(status)))
                case _:
                    self._close_request(worker)
                    self._take(workers.Refused(number))

    def _watch_lifeline(self, number: int, worker: Worker) -> None:
        if worker.lifeline is None:
            return
        worker.lifeline.setblocking(False)
        self._selector.register(
            worker.lifeline, selectors.EVENT_READ, lambda: self._hear_lifeline(number, worker)
        )

    def _hear_lifeline(self, number: int, worker: Worker) -> None:
        if worker.lifeline is None:
            return
        try:
            data = worker.lifeline.recv(64)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        worker.said = (worker.said + data)[-64:]
        if not data:
            self._selector.unregister(worker.lifeline)
            worker.lifeline.close()
            worker.lifeline = None
            self._take(workers.LifelineEnded(number, worker.exit_code_said()))

    # Ends.

    def _reap(self) -> None:
        """Take note of the children that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._children.pop(pid, None)
            if worker is not None:
                self._take(workers.Gone(worker, os.waitstatus_to_exitcode(status)))

    def _close_request(self, worker: Worker) -> None:
        if worker.request is not None:
            self._selector.unregister(worker.request.connection)
            worker.request.connection.close()
            worker.request = None

    def _close_lifeline(self, worker: Worker) -> None:
        self._close_request(worker)
        worker.close_its_ends()
        if worker.lifeline is not None:
            if worker.lifeline in self._selector.get_map():
                self._selector.unregister(worker.lifeline)
            worker.lifeline.close()
            worker.lifeline = None

    def _forget(self, number: int) -> None:
        worker = self._workers.pop(number)
        self._close_lifeline(worker)
        self._printing.end(number)
        self._children = {pid: other for pid, other in self._children.items() if other != number}

    # Writing.

    def _watch_writing(self) -> None:
        """Wait for room where there is something to send."""
        targets: list[tuple[Any, bool]] = [(self._writing, bool(self._unsent))]
        requests = (worker.request for worker in self._workers.values() if worker.request is not None)
        targets += [(request.connection, request.has_more) for request in requests]
        for target, has_more in targets:
            key = self._selector.get_map().get(target)
            events = key.events if key is not None else 0
            wanted = (events & selectors.EVENT_READ) | (selectors.EVENT_WRITE if has_more else 0)
            if wanted == events:
                continue
            if key is None:
                self._selector.register(target, wanted)
            elif wanted:
                self._selector.modify(target, wanted, key.data)
            else:
                self._selector.unregister(target)

    def _write(self, target: Any) -> None:
        if target == self._writing:
            self._write_launcher()
            return
        for worker in self._workers.values():
            if worker.request is not None and worker.request.connection is target:
                worker.request.send()
