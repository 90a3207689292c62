"""Where everything of one job is: the one place that spells the paths of its output directory."""

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.errors import UsageError
from edt_launch.core.files import plain_files


class _Below:
    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, paths: "RunDir", owner: object) -> Path:
        return paths.root / self._path


@dataclass(frozen=True)
class RunDir:
    """The output directory of a job, an absolute path."""

    root: Path

    events = _Below("events.jsonl")
    """Every event of the job, one JSON object a line."""
    log = _Below("log")
    """The folder of the logs."""
    own_log = _Below("log/edt-launch.log")
    """What `edt-launch` itself decides, and what agents and ssh say."""
    job_log = _Below("log/launcher.log")
    """With `--single-log`: all workers' output. In a service's jobs, also what `edt-launch` prints."""
    horovodrun_log = _Below("log/horovodrun.log")
    """What Horovod's own horovodrun says itself, where that runs the job."""
    checkpoint = _Below("checkpoint")
    """The folder of the checkpoints, which workers write and read."""
    code = _Below("_submitted_code")
    """The copy of the submitted code, if one was made."""
    model = _Below("model")
    """The folder of what the job is for, where the job has one."""
    train = _Below("model/train")
    """The folder that a training script writes its model into."""
    run = _Below("run")
    """The folder of what the job's processes read."""
    log_times = _Below("run/log_times")
    """The sizes of the logs over time, see `log_times`."""
    allocation = _Below("run/allocation")
    """The accepted copy of the allocation."""
    launcher = _Below("run/launcher")
    """Who runs the job, or did last: `pid` and `started` of the process, as in `events.Begun`, as JSON."""
    result = _Below("run/result")
    """How the launcher in `launcher` has ended, see `result_file`."""
    job_run = _Below("run/job_run")
    """The mark of the job's processes, and the number of its newest run, see `edt_messages.runs`."""
    control = _Below("run/control")
    """The socket over which the running launcher takes requests."""
    discovery_script = _Below("run/discover_hosts.sh")
    """The host-discovery script."""
    discovered = _Below("run/discovered")
    """Generation of the allocation that plain horovodrun has seen last."""
    worker_events = _Below("run/worker_events.jsonl")
    """Events that the workers of plain horovodrun have written down, one JSON object a line."""

    def rank_log(self, label: str) -> Path:
        """Output of the worker that was called `label` then: a rank, or 'w' and a serial number."""
        return self.log / f"rank.{label}.log"

    @contextlib.contextmanager
    def opened(self, option: str = "--output-dir") -> Iterator[None]:
        """Make the folders, which `option` names, and keep other launchers out of them.

        Raises:
            UsageError: it cannot be made or written, or another `edt-launch` is using it.
        """
        try:
            for folder in (self.log, self.run):
                folder.mkdir(parents=True, exist_ok=True)
            lock = plain_files.open_file(self.run / "lock", "ab")
        except OSError as error:
            raise UsageError(f"{option} {self.root}: {error.strerror}; name a folder you may write") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{option} {self.root}: another edt-launch is using it; name another folder"
                ) from None
            yield
