"""The `edt-launch` processes of jobs: started so that they outlive us, found again, asked, swept up after."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from edt_launch.core.control_protocol import Pause, Request
from edt_launch.core.files.plain_files import NoFileError, open_file
from edt_launch.core.history import result_file
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system import environments
from edt_launch.core.system.accounts import Account, Accounts, acting_as_owner_of, give
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.loop.change_logger import ChangeLogger
from edt_launch.service.jobs.loop.device_grant import DeviceGrant, unaccounted
from edt_launch.service.jobs.loop.launching.control_client import ControlAnswer, Exchange
from edt_launch.service.jobs.loop.launching.identity import is_lock_free, locked, process_of, read_identity
from edt_launch.service.jobs.loop.launching.invocation import arguments, environment, under
from edt_launch.service.jobs.loop.launching.sweeps import Sweeps
from edt_launch.service.jobs.loop.observed import ObservedLauncher
from edt_launch.service.jobs.loop.progress import LOST_GRACE, Device, LauncherRun
from edt_launch.service.jobs.records import JobRecord

NAMELESS = 60.0
"""Seconds within which a launcher writes down who it is; whoever has its lock after that is not one."""

SAID = 2000
"""Characters of a launcher's last words that are kept."""

COMMAND = (sys.executable, "-P", "-m", "edt_launch.launcher.command")
"""How `edt-launch` is started; not from the folder of the user's code."""


class Launchers:
    """Starts, finds, asks and sweeps up after launchers.

    Args:
        command: the command that is `edt-launch`, or behaves like it.
        horovodrun: whether Horovod's own driver is to run all jobs that name no framework.
        max_log_size: bytes of each job's log; None for no limit.
        accounts: of the users whose jobs these are; None to run all as this process.
        clock: seconds, only forwards.
        sweeps: end what jobs have left.
    """

    def __init__(
        self,
        command: Sequence[str] = COMMAND,
        *,
        horovodrun: bool = False,
        max_log_size: int | None = None,
        accounts: Accounts | None = None,
        groups: tuple[object, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        sweeps: Sweeps | None = None,
    ) -> None:
        self._command = command
        self._horovodrun = horovodrun
        self._max_log_size = max_log_size
        self._accounts = accounts
        self._groups = groups
        self.transport: str | None = None
        """How other hosts are reached, else by ssh."""
        self._clock = clock
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._exit_codes: dict[str, int] = {}
        self._gone_since: dict[str, float] = {}
        self._sweeps = sweeps or Sweeps()
        self._nameless_since: dict[str, float] = {}
        self._exchanges: dict[str, Exchange] = {}
        self._accepted: dict[str, str] = {}
        self._problems = ChangeLogger()

    @property
    def children(self) -> Sequence[subprocess.Popen[bytes]]:
        """Launchers that this process has started and not yet seen end."""
        return list(self._children.values())

    @property
    def _common(self) -> RunOptions:
        """What all jobs have of the service's settings."""
        return RunOptions(
            max_log_size=self._max_log_size, single_log=True, transport=self.transport, groups=self._groups
        )

    def is_alive(self, job: str, paths: JobDir) -> bool:
        """Whether a launcher of the job runs. When not, all that it has written is there to be read."""
        child = self._children.get(job)
        if child is not None and (code := child.poll()) is not None:
            self._exit_codes[job] = code
            del self._children[job]
        # One that ends has given up the lock a moment before it can be waited for.
        if job in self._children or (not is_lock_free(paths) and self._has_it(job, paths)):
            self._gone_since.pop(job, None)
            self._sweeps.forget(job)
            return True
        self._nameless_since.pop(job, None)
        self._gone_since.setdefault(job, self._clock())
        return False

    def _has_it(self, job: str, paths: JobDir) -> bool:
        """Whether it is a launcher that has the lock of a job."""
        if read_identity(paths.launcher) is not None:
            return process_of(paths) is not None
        since = self._nameless_since.setdefault(job, self._clock())
        return self._clock() - since < NAMELESS

    def look(
        self, job: str, paths: JobDir, is_alive: bool, grant: DeviceGrant, run: LauncherRun | None
    ) -> ObservedLauncher:
        """What is known of a job's launcher; `run` was read from its events after `is_alive` was seen."""
        known = read_identity(paths.launcher)
        if is_alive:
            self._listen(job, paths)
            return ObservedLauncher(is_alive=True, identity=known, accepted=self._accepted.get(job))
        self._hang_up(job)
        result = result_file.read(paths.output.result)
        if result is not None and (result.pid, result.started) != known:
            result = None
        return ObservedLauncher(
            identity=known,
            exit_code=result.exit_code if result is not None else self._exit_codes.get(job),
            message=result.message if result is not None else "",
            has_leftovers=self._has_leftovers(job, paths, unaccounted(grant, run, known)),
            said=_last_words(paths.launcher_log) if known is None else "",
        )

    def _has_leftovers(self, job: str, paths: JobDir, devices: frozenset[Device]) -> bool:
        """Whether workers may still be on these devices though their launcher is gone.

        Those on this machine are looked for, and ended. Nobody can say anything about those on other hosts,
        which end themselves.
        """
        if not devices:
            return False
        since = self._gone_since.setdefault(job, self._clock())
        found = self._sweeps.found(job)
        if found is None:
            self._sweeps.begin(job, paths.train, frozenset(host for host, _ in devices))
            return True
        is_waited_for = self._clock() - since < LOST_GRACE
        return bool(found.processes) or (bool(found.remote) and is_waited_for)

    def start(self, record: JobRecord, paths: JobDir) -> bool:
        """Start a launcher; False if one is alive, or what one has left is just being ended.

        Raises:
            OSError: the folder of the job, or of the code, is not there or cannot be used.
        """
        if self._sweeps.is_under_way(record.id):
            return False
        code = Path(os.path.realpath(paths.code / record.directory))  # of links that go round, too
        if not code.is_relative_to(os.path.realpath(paths.code)):
            raise NotADirectoryError(f"{record.directory!r} is not inside the submitted code")
        account = self._account(record, paths)
        inherited = {**os.environ, **(account.variables if account is not None else {})}
        own, job = environment(inherited, record, paths)
        with environments.handed_over(job) as handed, contextlib.ExitStack() as files:
            with acting_as_owner_of(paths.root):
                for folder in paths.folders:
                    folder.mkdir(parents=True, exist_ok=True)
                lock = files.enter_context(locked(paths.launcher_lock))
                log = files.enter_context(open_file(paths.launcher_log, "ab"))
            if lock is None:
                return False
            self._children[record.id] = subprocess.Popen(
                [*self._command, *arguments(record, paths, self._horovodrun, self._common)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=code,
                env={**own, environments.HANDED_OVER: str(handed)},
                pass_fds=[lock.fileno(), handed],
                start_new_session=True,
                **under(account),
            )
        return True

    def _account(self, record: JobRecord, paths: JobDir) -> Account | None:
        """The account that a job runs under; its folder is that account's before anything of it has run.

        Raises:
            NoAccountError: its owner has none.
        """
        if self._accounts is None:
            return None
        account = self._accounts.of(record.owner)
        if paths.root.stat().st_uid == 0:
            give(paths.root, account)
        return account

    def prepare(self, job: str, paths: JobDir) -> None:
        """Forget who the last launcher was, and how it ended; it is gone."""
        with acting_as_owner_of(paths.root):
            paths.launcher.unlink(missing_ok=True)
            with contextlib.suppress(IsADirectoryError):  # the job's own doing
                paths.launcher_lock.unlink(missing_ok=True)  # which a process of the job may have
        self._exit_codes.pop(job, None)
        self._hang_up(job)

    def send(self, job: str, paths: JobDir, request: Request) -> None:
        """Send a request to a job's launcher; `look` says when it has been accepted. Does not wait.

        One that runs without its socket, which may have been removed, gets a signal instead.
        """
        self._hang_up(job)
        exchange = self._exchanges[job] = Exchange(paths.output.control, request)
        if exchange.answer is ControlAnswer.NO_LAUNCHER:
            _signal(process_of(paths), _like(request))

    def kill(self, job: str, paths: JobDir) -> bool:
        """Kill a job's launcher; False if nobody knows which process that is, or it is gone.

        We know those that we have started, and those that have written down who they are.
        """
        if (child := self._children.get(job)) is not None:
            child.kill()  # nothing happens if it has just ended
            return True
        return _signal(process_of(paths), signal.SIGKILL)

    def close(self) -> None:
        """Wait for no more answers."""
        for job in list(self._exchanges):
            self._hang_up(job)

    def forget(self, job: str) -> None:
        """The job has ended, or is not there any more."""
        self._hang_up(job)
        self._exit_codes.pop(job, None)
        self._gone_since.pop(job, None)
        self._nameless_since.pop(job, None)
        self._sweeps.forget(job)

    def _listen(self, job: str, paths: JobDir) -> None:
        """Take in what has become of the last request; a launcher that does not accept it gets a signal, too.

        A job's program may have put a socket of its own in place of the launcher's.
        """
        exchange = self._exchanges.get(job)
        if exchange is None or (answer := exchange.look()) is None:
            return
        del self._exchanges[job]
        what = f"{job}: a request to its launcher"
        if answer is ControlAnswer.ACCEPTED:
            self._accepted[job] = exchange.request.id
            self._problems.recovered(what)
        elif answer is not ControlAnswer.NO_LAUNCHER:  # which has just been started
            self._problems.failed(what, RuntimeError(exchange.reason or answer.value))
            _signal(process_of(paths), _like(exchange.request))

    def _hang_up(self, job: str) -> None:
        self._accepted.pop(job, None)
        exchange = self._exchanges.pop(job, None)
        if exchange is not None:
            exchange.close()

    def sweep(self, job: str) -> None:
        """Try again to end what a job has left on this machine. Does not wait."""
        self._sweeps.again(job)


def _like(request: Request) -> signal.Signals:
    if isinstance(request, Pause):
        return signal.SIGUSR1
    return signal.SIGINT if request.at_once else signal.SIGTERM


def _signal(process: psutil.Process | None, number: int) -> bool:
    """Send a signal to a process; False if there is none, or it is gone."""
    try:
        if process is not None:
            process.send_signal(number)
    except psutil.Error:
        return False
    return process is not None


def _last_words(path: Path) -> str:
    try:
        with open_file(path) as file:
            file.seek(-min(4 * SAID, file.seek(0, os.SEEK_END)), os.SEEK_END)
            return file.read(4 * SAID).decode(errors="replace")[-SAID:].strip()
    except (FileNotFoundError, NoFileError):
        return ""
