"""The processes of an agent's workers: what `lifecycle` decides is done to them, and what becomes of them."""

import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from edt_launch.agent import lifecycle, protocol
from edt_launch.agent.lifecycle import Do, ProcessPhase, Verb
from edt_launch.agent.local_job import LocalJob
from edt_launch.agent.printing import Printing
from edt_launch.agent.system import subreaper
from edt_launch.agent.warm.supervisor import ATTEMPTS, WarmSupervisor
from edt_launch.agent.worker import Worker
from edt_messages import forking


class WorkerProcesses:
    """Starts, watches and ends the workers of a job: `set_up` comes first, then `begin`, then the others.

    What finds and kills processes is imported when it is needed, because importing it takes time.

    Args:
        selector: calls what is registered when a descriptor can be read.
        send: sends a report.
        closing: called when no more orders count, perhaps more than once.
    """

    _job: LocalJob

    def __init__(
        self,
        selector: selectors.BaseSelector,
        send: Callable[[protocol.Report], None],
        closing: Callable[[], None],
    ) -> None:
        self._selector = selector
        self._send = send
        self._closing = closing
        self._state = lifecycle.State(can_fork=False)
        self._workers: dict[int, Worker] = {}
        self._children: dict[int, int] = {}
        """Workers by process, of those that are our children or may become that."""
        self._supervisor: WarmSupervisor | None = None
        """None if workers cannot be forked."""
        self.printing = Printing(selector, send, self.take)

    def set_up(self, job: LocalJob) -> None:
        """The workers to come are those of a job; its lease begins."""
        self._job = job
        if job.setup.lease is not None:
            now = time.monotonic()
            lease = lifecycle.Lease(job.setup.lease, renewed_at=now, heartbeat_at=now)
            self._state = replace(self._state, lease=lease)

    def begin(self) -> None:
        """The job is prepared: get ready to start its workers."""
        job = self._job
        if (program := job.forkable_program()) is not None:
            self._supervisor = WarmSupervisor(
                self._selector,
                self._send,
                program,
                job.command,
                job.environment,
                job.directory,
                job.setup.log,
            )
            self._state = replace(self._state, can_fork=self._supervisor.start())

    @property
    def is_over(self) -> bool:
        """Whether the launcher is gone, and every worker with it."""
        return self._state.is_over

    @property
    def deadline(self) -> float | None:
        """When `tick` is due; None if there is no such time."""
        return lifecycle.deadline(self._state)

    @property
    def devices(self) -> list[str] | None:
        """Those that the workers may use, each once; None without workers."""
        if not self._workers:
            return None
        lists = [worker.environment.get("CUDA_VISIBLE_DEVICES", "") for worker in self._workers.values()]
        return [*dict.fromkeys(device for devices in lists for device in devices.split(",") if device)]

    def tick(self) -> None:
        """Time has passed."""
        from edt_launch.agent.system import processes

        silent = lifecycle.silent(self._state)
        living = frozenset(worker for worker, pid in silent.items() if processes.is_running(pid))
        left = lifecycle.lingering(self._state).items()
        lingering = frozenset(worker for worker, pid in left if processes.of_worker(worker, pid))
        self.take(lifecycle.Tick(living | lingering))

    def take(self, event: lifecycle.Event) -> None:
        """Do what has to be done about something that has happened."""
        if isinstance(event, protocol.Start) and event.worker not in self._workers:
            self._workers[event.worker] = worker = self._job.worker(event)
            self.printing.begin(event.worker, worker.reading)
        self._state, actions = lifecycle.step(time.monotonic(), self._state, event)
        if self._state.is_closing:
            self._closing()
            if self._supervisor is not None:
                self._supervisor.kill()  # then its workers are our children
        for action in actions:
            if isinstance(action, Do):
                self._carry_out(action)
            else:
                self._send(action)

    def take_ended(self, pid: int, exit_code: int) -> bool:
        """A child of this process has ended; whether it was a worker."""
        worker = self._children.pop(pid, None)
        if worker is not None:
            self.take(lifecycle.Gone(worker, exit_code))
        return worker is not None

    def send_requests(self) -> None:
        """Send what is left of requests to the warm server, and be woken for the rest."""
        for request in (worker.request for worker in self._workers.values()):
            if request is not None:
                key = self._selector.get_key(request.connection)
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if request.send() else 0)
                if key.events != wanted:
                    self._selector.modify(request.connection, wanted, key.data)

    def sweep(self) -> int:
        """End what the workers have left; returns how many processes had to be killed."""
        if not subreaper.has_children():
            return 0
        from edt_launch.agent.system import processes

        return processes.sweep_descendants(lifecycle.LEFTOVER_GRACE)

    def _carry_out(self, action: Do) -> None:
        number, worker = action.worker, self._workers[action.worker]
        match action.verb:
            case Verb.FORK | Verb.EXECUTE if (lacking := self._job.lacks(worker)) is not None:
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

    # Starts.

    def _execute(self, number: int, worker: Worker, reason: str) -> None:
        self._close_request(worker)
        if reason:
            self.printing.note(number, f"{reason}; this worker starts without it")
        if self._job.directory is None:
            folder = self._job.setup.directory
            self.printing.note(number, f"{folder} is not on this host; this worker starts in {os.getcwd()}")
        try:
            process = worker.execute(self._job.directory)
        except (OSError, ValueError) as error:
            program = worker.command[0]
            self._give_up(number, worker, f"cannot run {program}: {self._job.why_not_run(program, error)}")
            return
        worker.close_its_ends()
        process.returncode = 0  # whoever reaps all children waits for it
        self._children[process.pid] = number
        self.take(lifecycle.Running(number, process.pid))

    def _give_up(self, number: int, worker: Worker, reason: str) -> None:
        self.printing.note(number, reason)
        worker.close_its_ends()
        self.take(lifecycle.Gone(number, lifecycle.NOT_FOUND))

    def _fork(self, number: int, worker: Worker) -> None:
        while self._supervisor is not None and worker.attempts < ATTEMPTS:
            worker.attempts += 1
            worker.request = self._supervisor.request(worker.environment, worker.command)
            if worker.request is not None:
                self._selector.register(
                    worker.request.connection,
                    selectors.EVENT_READ,
                    lambda: self._hear_request(number, worker),
                )
                return
        self.take(lifecycle.Refused(number))

    def _hear_request(self, number: int, worker: Worker) -> None:
        if worker.request is None:  # closed in the same turn
            return
        answers = worker.request.answers()
        if answers is None:
            self._close_request(worker)
            if self._state.processes[number].phase is ProcessPhase.ASKED:
                self._fork(number, worker)  # from another server
            return
        for answer in answers:
            try:
                self._take_answer(number, worker, answer)
            except (OSError, ValueError) as error:  # whatever the program's imports have made of the server
                print(f"edt agent: {answer} of the warm server makes no sense: {error}", file=sys.stderr)
                self._close_request(worker)
                self.take(lifecycle.Refused(number))
                return

    def _take_answer(self, number: int, worker: Worker, answer: forking.Message) -> None:
        """Raises OSError or ValueError: there is no such answer, or not now."""
        process = self._state.processes.get(number)
        match answer, process.phase if process is not None else None:
            case forking.Ready(), ProcessPhase.ASKED:
                worker.give()
            case forking.Forked(pid), ProcessPhase.ASKED:
                worker.close_its_ends()
                self._children[pid] = number
                self._watch_lifeline(number, worker)
                self.take(lifecycle.Running(number, pid, is_forked=True))
            case forking.Exited(status), ProcessPhase.RUNNING:
                self.take(lifecycle.Gone(number, os.waitstatus_to_exitcode(status)))
            case _, None | ProcessPhase.ENDED:
                pass  # too late
            case _, phase:
                raise ValueError(f"the worker is {phase}")

    def _watch_lifeline(self, number: int, worker: Worker) -> None:
        def hear() -> None:
            if worker.lifeline.fileno() >= 0 and not worker.hear():  # else closed in the same turn
                self._close(worker.lifeline)
                self.take(lifecycle.LifelineEnded(number, worker.exit_code_said))

        worker.lifeline.setblocking(False)
        self._selector.register(worker.lifeline, selectors.EVENT_READ, hear)

    # Ends.

    def _terminate(self, number: int, *, others: bool) -> None:
        from edt_launch.agent.system import processes

        processes.terminate_worker(number, self._state.processes[number].pid, others=others)

    def _kill(self, number: int) -> None:
        from edt_launch.agent.system import processes

        process = self._state.processes.get(number)
        processes.kill_worker(number, process.pid if process is not None else None)

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
        self.printing.end(number)
        self._children = {pid: other for pid, other in self._children.items() if other != number}
