"""A job under horovodrun, from its start to its last process."""

import os
import selectors
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from edt_launch.agent.system import processes
from edt_launch.agent.system.lifeline import kill_group_when_peer_closes
from edt_launch.agent.system.processes import JOB_VARIABLE
from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.network import HostChecker
from edt_launch.core.errors import ExitCode, StartError, StartTimeoutError
from edt_launch.core.files.growing_file import GrowingFile, Line
from edt_launch.core.files.plain_files import open_file
from edt_launch.core.history import events
from edt_launch.core.history.event_codec import events_of
from edt_launch.core.history.event_log import stamped
from edt_launch.core.history.log_times import LogTimes
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.environment import environment
from edt_launch.launcher.horovodrun.command import command
from edt_launch.launcher.horovodrun.observed import Noted, Observed, find
from edt_launch.launcher.horovodrun.output import HorovodrunOutput
from edt_launch.launcher.hosts import checkpoints
from edt_launch.launcher.plan import JobOutcome
from edt_launch.launcher.program import LaunchedJob
from edt_launch.launcher.runs.job_runs import JobRuns
from edt_launch.launcher.termination import Ending, Step, signal_name
from edt_launch.launcher.transports.ssh import Ssh

TICK = 0.2
"""Seconds between two looks at everything."""

CHUNK = 2**16
"""Bytes read at once."""

LEFTOVER_GRACE = 2.0
"""Seconds that processes have to follow horovodrun into its end before they are killed."""


class Horovodrun:
    """Runs a job through Horovod's own elastic driver; each worker runs `program`."""

    def __init__(self, program: Sequence[str], job: LaunchedJob) -> None:
        self._program = program
        self._plan = job.plan
        self._view = job.view
        self._log = job.log
        self._take_signals = job.listen
        self._hosts = HostChecker(interface=job.plan.options.network_interface)
        self._allocations = Allocations(job.plan, self._note_allocation, self._problem)
        self._ending = Ending()
        self._observed = Observed()
        self._looked_at = self._workers_at = time.monotonic()
        runs = JobRuns(job.plan.paths.job_run, job.view.message)
        self._mark = runs.variables(runs.begin())
        self._name = self._mark[JOB_VARIABLE]
        self._size: int | None = None
        """Workers of the present world; None before the first."""
        streams = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
        options = job.plan.options
        self._output = HorovodrunOutput(
            job.plan.paths, streams, job.view.message, options.max_log_size, is_single=options.single_log
        )
        self._log_times = LogTimes(job.plan.paths, job.view.message, time.time())
        self._reported = GrowingFile(job.plan.paths.worker_events)

    def run(self) -> JobOutcome:
        """Run the job; what it raises is what `job.run` raises."""
        first = self._wait_for_slots()
        return self._conclude(None if first is None else self._supervise(first))

    def _wait_for_slots(self) -> Allocation | None:
        timeout = self._plan.options.start_timeout
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            self._listen(now)
            if self._ending.is_wanted or self._ending.is_pausing:
                return None
            self._allocations.follow(now)
            if self._allocations.current is not None:
                return self._allocations.current
            if now >= deadline:
                raise StartTimeoutError(0, self._plan.limits.min_np, timeout, self._allocations.rejection)
            time.sleep(TICK)

    # The process.

    def _supervise(self, first: Allocation) -> int:
        """Run horovodrun to its end; returns its exit code, negative for a signal."""
        plan = self._plan
        named = [host.host for host in first.hosts if host.slots]
        interface = self._hosts.interface_towards(named)
        self._hosts.fix_interface(interface)
        words = command(self._program, plan, first, interface)
        if plan.options.verbose:
            self._view.message(shlex.join(words))
        with _started(words, self._environment()) as process:
            self._note(events.Launched(tuple(self._program), process.pid, interface))
            try:
                for stream, data in _read(process):
                    if stream:
                        self._output.take(stream, data)
                    self._tick(process)
            finally:
                family = processes.tree(process.pid)
                if process.poll() is None:
                    process.kill()
                left = processes.sweep(self._name, family, LEFTOVER_GRACE)
                self._output.close()
                self._log_times.close(time.time())
            self._look(process.pid)
            if left and not self._ending.is_wanted:
                self._view.message(f"killed {processes.number(left)} that horovodrun had left behind")
            return process.wait()

    def _environment(self) -> dict[str, str]:
        plan = self._plan
        plan.paths.worker_events.unlink(missing_ok=True)
        inherited = {name: value for name, value in os.environ.items() if name.isidentifier()}  # a shell's
        return {
            **environment(inherited, plan),
            "EDT_MAX_NP": str(plan.limits.max_np),
            "EDT_REPORTS": str(plan.paths.worker_events),
            **self._mark,
        }

    # What happens.

    def _tick(self, process: subprocess.Popen[bytes]) -> None:
        now = time.monotonic()
        self._listen(now)
        self._allocations.follow(now)
        if now >= self._looked_at + TICK:
            self._looked_at = now
            self._look(process.pid)
            self._log_times.observe(time.time())
            self._end_leftovers(now, process.pid)
        # Horovod's driver has no way to have workers leave: a job that is to pause is ended.
        self._ending, step = self._ending.decide(now, has_workers=False)
        match step:
            case Step.TERMINATE | Step.PAUSE:
                self._view.message("ending all workers; Ctrl-C kills them at once")
                process.terminate()
            case Step.KILL:
                count = processes.kill_job(process.pid, self._name, ())
                self._view.message(f"{processes.number(count)} had to be killed")

    def _listen(self, now: float) -> None:
        for received in self._take_signals():
            self._ending = self._ending.signalled(now, received)

    def _problem(self, host: HostSlots) -> str | None:
        if host.transport not in ("", Ssh.name):
            return (
                f"host {host.host!r} names the transport {host.transport}: horovodrun reaches hosts over ssh"
            )
        return self._hosts(host.host)

    def _note_allocation(self, event: events.Event) -> None:
        self._log.write(event)
        match event:
            case events.AllocationAccepted():
                assert self._allocations.current is not None
                self._observed = self._observed.allocate(self._allocations.current)
            case events.AllocationRejected(reason):
                self._view.message(reason)

    def _look(self, pid: int) -> None:
        """Look at the processes, and at what the discovery script and the coordinator have written."""
        noted = _read_note(self._plan.paths.discovered)
        self._observed, changes = self._observed.look(find(pid), noted)
        for change in changes:
            self._note(change)
        for event in events_of(self._new_lines()):
            if isinstance(event, events.World):
                self._log.write(replace(event, previous_size=self._size))
                self._size = event.size
            elif isinstance(event, events.Reported):
                self._log.write(event)

    def _new_lines(self) -> list[Line]:
        try:
            return self._reported.lines()
        except OSError:  # what the job has made of it is the job's own loss
            return []

    def _end_leftovers(self, now: float, pid: int) -> None:
        """Kill what workers have left, once all are gone: horovodrun waits for whoever may print."""
        if self._observed.workers or not self._observed.started:
            self._workers_at = now
        elif now >= self._workers_at + LEFTOVER_GRACE:
            processes.kill(processes.marked(self._name) - processes.tree(pid))

    def _note(self, event: events.Event) -> None:
        self._log.write(stamped(event))

    # The end.

    def _conclude(self, exit_code: int | None) -> JobOutcome:
        """How the job ended, given horovodrun's exit code; None if it was never started."""
        if self._ending.exit_code is not None:
            return JobOutcome(
                self._ending.exit_code, f"edt-launch: ended by {signal_name(self._ending.first)}"
            )
        # Horovod's driver forgets workers whose hosts were all replaced, and ends with 0 although it gave up.
        if exit_code == 0 and self._output.stop_reason is None:
            return JobOutcome(ExitCode.SUCCESS)
        if self._ending.is_pausing:
            how = checkpoints.how_to_go_on(self._plan.checkpoints, f"--output-dir {self._plan.paths.root}")
            return JobOutcome(ExitCode.LEFT, f"edt-launch: all workers have been ended; {how}")
        first, reason = self._output.first_failure, self._output.stop_reason
        has_begun = self._observed.started > 0 or first is not None
        code = ExitCode.JOB_FAILED if has_begun else ExitCode.NOT_STARTED
        what = "the job failed" if has_begun else "the job could not start"
        how = f"horovodrun ended with exit code {exit_code}"
        if first is not None:
            how = f"first failure: {first}"
        elif reason is not None:
            how = f"horovodrun ended it: {reason}, see {self._output.path_of(None)}"
        return JobOutcome(code, f"edt-launch: {what}: {how}\nlog: {self._plan.paths.log}")


@contextmanager
def _started(words: Sequence[str], variables: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the kernel kills when this one ends, however that comes.

    Raises:
        StartError: it cannot be executed.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=lambda: kill_group_when_peer_closes(theirs.fileno()),  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            raise StartError(f"cannot run {words[0]}: {error.strerror}") from None
        theirs.close()
        with process:
            yield process


def _read(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, bytes]]:
    """What the process prints, by stream, until it has ended; now and then nothing."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "stdout")
        selector.register(process.stderr, selectors.EVENT_READ, "stderr")
        while (is_running := process.poll() is None) or selector.get_map():
            ready = selector.select(TICK if is_running else 0)
            for key, _ in ready:
                data = os.read(key.fd, CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                yield key.data, data
            if not ready:
                if not is_running:
                    return  # what is still open belongs to processes that it has left behind
                yield "", b""


def _read_note(path: Path) -> Noted | None:
    try:
        with open_file(path) as file:  # workers may put anything there
            return Noted(int(file.read(32)), os.stat(file.fileno()).st_mtime_ns)
    except (OSError, ValueError):
        return None
