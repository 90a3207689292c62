"""Where the service keeps what: the one place that spells the paths below EDT_HOME."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from edt_launch.core.run_dir import RunDir
from edt_launch.core.system.home_directory import HOME_ADVICE, NO_HOME, expanded

JOB_ID = r"j[a-z2-7]{8}"
"""Ids of jobs: they become folders, so nothing else ever may."""

SEARCH_ID = r"h[a-z2-7]{8}"
"""Ids of searches, likewise."""

DEFINITION_ID = r"d[a-z2-7]{8}"
"""Ids of training definitions, likewise."""


class _Rooted(Protocol):
    @property
    def root(self) -> Path: ...


class Below:
    """An attribute: a path below the object's `root`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, owner: _Rooted, _kind: type) -> Path:
        return owner.root / self._path


@dataclass(frozen=True)
class JobDir:
    """The folder of a job, an absolute path: the output directory of its `edt-launch`, and what is added."""

    root: Path

    allocation = Below("allocation")
    """The allocation file that `edt-launch` follows."""
    submitted = Below("submitted.json")
    """Size and time of change, in nanoseconds, of each file of the submitted code."""

    @property
    def output(self) -> RunDir:
        """What `edt-launch` writes: `events`, `log`, `checkpoint`, `run`."""
        return RunDir(self.root)

    @property
    def code(self) -> Path:
        """The copy of the submitted code."""
        return self.output.code

    @property
    def train(self) -> Path:
        """The folder that a training script writes its model into."""
        return self.output.train

    @property
    def launcher(self) -> Path:
        """Process number and start time of the job's `edt-launch`, as JSON."""
        return self.output.launcher

    @property
    def launcher_lock(self) -> Path:
        """Locked for as long as an `edt-launch` of the job lives."""
        return self.output.run / "launcher.lock"

    @property
    def launcher_log(self) -> Path:
        """What the job's workers print, each line with its rank, and its `edt-launch`."""
        return self.output.job_log

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that a job has from the beginning."""
        return self.code, self.output.log, self.output.checkpoint, self.train, self.output.run


class NoHomeDirectoryError(ValueError):
    """A path is in the home directory of a user who has none."""


def absolute(path: str | Path) -> Path:
    """The absolute path, with the home directory in place of `~`.

    Raises:
        NoHomeDirectoryError: there is none.
    """
    if (found := expanded(path)) is None:
        raise NoHomeDirectoryError(f"{path}: {NO_HOME}; {HOME_ADVICE}")
    return found.absolute()


@dataclass(frozen=True)
class Home:
    """The folder of a service, EDT_HOME: an absolute path."""

    root: Path

    database = Below("edt.db")
    """The SQLite database, if no other one is named."""
    settings = Below("service.toml")
    server = Below("server.json")
    """Where the running service listens: `url` and `pid`, as JSON."""
    token = Below("token")
    """The administrator's token, for its owner's eyes only."""
    lock = Below("serve.lock")
    """Locked for as long as a service uses the folder."""
    jobs = Below("jobs")
    identity = Below("jobs/identity")
    """The name by which the database knows the folder of its jobs."""
    data = Below("data")
    """The folder of jobs' data, if the settings name none."""
    tls = Below("tls")
    """The folder of the certificate that the service has made itself, and of its key."""
    incoming = Below("incoming")
    """The folder of what is being received; emptied when the service starts."""
    trash = Below("trash")
    """The folder of what is being deleted; emptied when the service starts."""
    searches = Below("searches")
    """The folder of what searches run: an archive each."""
    definitions = Below("definitions")
    """The folder of training definitions' codes: a folder each, with an archive for each code."""

    @classmethod
    def default(cls) -> "Home":
        """$EDT_HOME, or `~/.edt`."""
        return cls(absolute(os.environ.get("EDT_HOME") or "~/.edt"))

    def search(self, search_id: str) -> Path:
        """The archive of a search; `ValueError` if it is not an id, and so must not become a path."""
        if not re.fullmatch(SEARCH_ID, search_id):
            raise ValueError(f"{search_id!r} is no id of a search")
        return self.searches / search_id

    def definition(self, definition_id: str) -> Path:
        """The folder of a training definition's codes; `ValueError` if it is not an id."""
        if not re.fullmatch(DEFINITION_ID, definition_id):
            raise ValueError(f"{definition_id!r} is no id of a training definition")
        return self.definitions / definition_id

    def job(self, job_id: str) -> JobDir:
        """The folder of a job; `ValueError` if it is not an id, and so must not become a path."""
        if not re.fullmatch(JOB_ID, job_id):
            raise ValueError(f"{job_id!r} is no id of a job")
        return JobDir(self.jobs / job_id)
