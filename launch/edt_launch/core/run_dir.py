"""Where everything of one job is: the one place that spells the paths of its output directory."""

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.errors import UsageError


@dataclass(frozen=True)
class RunDir:
    """The output directory of a job, an absolute path."""

    root: Path

    @property
    def events(self) -> Path:
        """Every event of the job, one JSON object a line."""
        return self.root / "events.jsonl"

    @property
    def log(self) -> Path:
        """The folder of the logs."""
        return self.root / "log"

    def rank_log(self, label: str) -> Path:
        """Output of whoever was called `label` then: a rank, or 'w' and a serial number."""
        return self.log / f"rank.{label}.log"

    @property
    def own_log(self) -> Path:
        """What `edt-launch` itself decides, and what agents and ssh say."""
        return self.log / "edt-launch.log"

    @property
    def horovodrun_log(self) -> Path:
        """What Horovod's own horovodrun says itself, where that runs the job."""
        return self.log / "horovodrun.log"

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoints, which workers write and read."""
        return self.root / "checkpoint"

    @property
    def code(self) -> Path:
        """The copy of the submitted code, if one was made."""
        return self.root / "_submitted_code"

    @property
    def model(self) -> Path:
        """The folder of what the job is for, where the job has one."""
        return self.root / "model"

    @property
    def train(self) -> Path:
        """The folder that a training script writes its model into."""
        return self.model / "train"

    @property
    def run(self) -> Path:
        """The folder of what the job's processes read."""
        return self.root / "run"

    @property
    def allocation(self) -> Path:
        """The accepted copy of the allocation."""
        return self.run / "allocation"

    @property
    def launcher(self) -> Path:
        """Who runs the job, or did last: `pid` and `started` (unix time) of the process, as JSON."""
        return self.run / "launcher"

    @property
    def control(self) -> Path:
        """The socket over which the running launcher takes requests."""
        return self.run / "control"

    @property
    def discovery_script(self) -> Path:
        """The host-discovery script."""
        return self.run / "discover_hosts.sh"

    @property
    def discovered(self) -> Path:
        """Generation of the allocation that plain horovodrun has seen last."""
        return self.run / "discovered"

    @property
    def worker_events(self) -> Path:
        """Events that the workers of plain horovodrun have written down, one JSON object a line."""
        return self.run / "worker_events.jsonl"

    @contextlib.contextmanager
    def opened(self, option: str = "--output-dir") -> Iterator[None]:
        """Make the folders, and keep other launchers out of them.

        Args:
            option: what names it on the command line.

        Raises:
            UsageError: it cannot be made or written, or another `edt-launch` is using it.
        """
        try:
            for folder in (self.log, self.run):
                folder.mkdir(parents=True, exist_ok=True)
            lock = (self.run / "lock").open("w")
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
