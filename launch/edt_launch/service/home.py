"""Where the service keeps what: the one place that spells the paths below EDT_HOME."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.run_dir import RunDir

JOB_ID = r"j[a-z2-7]{8}"
"""Ids of jobs: they become folders, so nothing else ever may."""

SEARCH_ID = r"h[a-z2-7]{8}"
"""Ids of searches for hyperparameters, likewise."""


@dataclass(frozen=True)
class JobDir:
    """The folder of a job: the output directory of its `edt-launch`, and what the service adds.

    Attributes:
        root: the folder, an absolute path.
    """

    root: Path

    @property
    def output(self) -> RunDir:
        """What `edt-launch` writes: `events`, `log`, `checkpoint`, `run`."""
        return RunDir(self.root)

    @property
    def allocation(self) -> Path:
        """The allocation file that `edt-launch` follows."""
        return self.root / "allocation"

    @property
    def code(self) -> Path:
        """The copy of the submitted code."""
        return self.output.code

    @property
    def model(self) -> Path:
        """The folder of what the job is for."""
        return self.output.model

    @property
    def train(self) -> Path:
        """The folder that a training script writes its model into."""
        return self.output.train

    @property
    def launcher(self) -> Path:
        """Process number and start time of the job's `edt-launch`, as JSON."""
        return self.output.run / "launcher"

    @property
    def launcher_lock(self) -> Path:
        """Locked for as long as an `edt-launch` of the job lives."""
        return self.output.run / "launcher.lock"

    @property
    def launcher_log(self) -> Path:
        """What the job's `edt-launch` prints."""
        return self.output.log / "launcher.log"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that a job has from the beginning."""
        return self.code, self.output.log, self.output.checkpoint, self.train, self.output.run


@dataclass(frozen=True)
class Home:
    """The folder of a service.

    Attributes:
        root: EDT_HOME, an absolute path.
    """

    root: Path

    @classmethod
    def default(cls) -> "Home":
        """$EDT_HOME, or `~/.edt`."""
        return cls(Path(os.environ.get("EDT_HOME") or "~/.edt").expanduser().absolute())

    @property
    def database(self) -> Path:
        """The SQLite database, if no other one is named."""
        return self.root / "edt.db"

    @property
    def settings(self) -> Path:
        """The file of settings."""
        return self.root / "service.toml"

    @property
    def server(self) -> Path:
        """Where the running service listens: `url` and `pid`, as JSON."""
        return self.root / "server.json"

    @property
    def token(self) -> Path:
        """The administrator's token, for its owner's eyes only."""
        return self.root / "token"

    @property
    def lock(self) -> Path:
        """Locked for as long as a service uses the folder."""
        return self.root / "serve.lock"

    @property
    def jobs(self) -> Path:
        """The folder of all jobs."""
        return self.root / "jobs"

    @property
    def identity(self) -> Path:
        """The name by which the database knows the folder of its jobs."""
        return self.jobs / "identity"

    @property
    def data(self) -> Path:
        """The folder of jobs' data, if the settings name none."""
        return self.root / "data"

    @property
    def tls(self) -> Path:
        """The folder of the certificate that the service has made itself, and of its key."""
        return self.root / "tls"

    @property
    def incoming(self) -> Path:
        """The folder of what is being received; emptied when the service starts."""
        return self.root / "incoming"

    @property
    def trash(self) -> Path:
        """The folder of what is being deleted; emptied when the service starts."""
        return self.root / "trash"

    @property
    def searches(self) -> Path:
        """The folder of what searches for hyperparameters run: an archive each."""
        return self.root / "searches"

    def search(self, search_id: str) -> Path:
        """The archive of a search.

        Raises:
            ValueError: it is not an id, and so must not become a path.
        """
        if not re.fullmatch(SEARCH_ID, search_id):
            raise ValueError(f"{search_id!r} is no id of a search")
        return self.searches / search_id

    def job(self, job_id: str) -> JobDir:
        """The folder of a job.

        Raises:
            ValueError: it is not an id, and so must not become a path.
        """
        if not re.fullmatch(JOB_ID, job_id):
            raise ValueError(f"{job_id!r} is no id of a job")
        return JobDir(self.jobs / job_id)
