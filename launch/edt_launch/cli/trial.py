"""What `edt up --demo` does: a service of its own in a folder that goes away, two users, a job of each."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edt_launch.cli import model, packing
from edt_launch.cli.configuration import Configuration
from edt_launch.cli.errors import ClientError, RefusedError, UnreachableError
from edt_launch.cli.model import Job
from edt_launch.cli.screen import plural
from edt_launch.cli.service import Service
from edt_launch.cli.signals import ENDING, as_exits
from edt_launch.cli.submission_body import Submission
from edt_launch.cli.transport import Http

SERVE = (sys.executable, "-m", "edt_launch.cli", "serve")
START_TIMEOUT = 60.0
"""Seconds within which the service must answer."""
END_TIMEOUT = 15.0
"""Seconds for the jobs to end, and for the service, before they are killed."""
POLL = 0.1
EXAMPLE = Path(__file__).parent / "example"
PEOPLE: Mapping[str, Sequence[str]] = {
    "ada": ("python", "train.py", "--epochs", "10"),
    "bob": ("python", "train.py", "--epochs", "20"),
}
"""Who submits what."""
FOREIGN = ("EDT_URL", "EDT_TOKEN", "EDT_HOME", "EDT_DATABASE", "EDT_HOST", "EDT_HOSTFILE")
"""Variables that are about another service."""


@dataclass
class Trial:
    """A running service with jobs in it.

    Attributes:
        configuration: where it is, with the administrator's token.
        folder: its home.
        log: what it prints.
        jobs: the ids of the jobs, by owner.
        sizes: of each job, the numbers of workers that were seen, one after the other.
    """

    configuration: Configuration
    folder: Path
    log: Path
    jobs: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, list[int]] = field(default_factory=dict)

    @property
    def service(self) -> Service:
        """The service, with everything allowed."""
        return Service(Http(self.configuration))

    def submit(self) -> None:
        """Let two people submit a job each."""
        code = packing.collect(EXAMPLE)
        for name, command in PEOPLE.items():
            token = self.service.add_user(name, is_admin=False).get("token")
            if token is None:
                token = self.service.add_token({"user": name, "name": "demo"})["token"]
            theirs = Service(Http(Configuration(self.configuration.url, str(token), "demo")))
            spec = {"name": "spirals", "command": list(command), "min": 1, "max": 4}
            self.jobs[name] = str(theirs.submit(Submission(spec, code))["id"])

    def note(self, jobs: Sequence[Job]) -> list[str]:
        """Remember the jobs' sizes; says in lines what is new."""
        news = []
        for job in jobs:
            sizes = self.sizes.setdefault(job.id, [])
            if job.size and (not sizes or sizes[-1] != job.size):
                news.append(f"{job.owner}'s job runs with {plural(job.size, 'worker')}")
                sizes.append(job.size)
        return news

    def finished(self, jobs: Sequence[Job]) -> bool:
        """Whether all of them have ended."""
        mine = [job for job in jobs if job.id in self.jobs.values()]
        return len(mine) == len(self.jobs) and all(job.has_ended for job in mine)

    def summary(self, jobs: Sequence[Job]) -> list[str]:
        """How it went, a line for each job."""
        return [
            f"{job.owner}  {job.id}  {job.state}"
            + (f"  {job.step} steps, loss {job.loss:.3f}" if job.step and job.loss is not None else "")
            + f"  workers: {' → '.join(map(str, self.sizes.get(job.id, []))) or 'none'}"
            for job in sorted(jobs, key=lambda job: job.owner)
        ]


@contextmanager
def trial(slots: int) -> Iterator[Trial]:
    """A service with so many CPU slots; ended with all that it has started, and removed, at the end."""
    folder = Path(tempfile.mkdtemp(prefix="edt-demo-"))
    log = folder / "serve.log"
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    command = [*SERVE, "--home", str(folder), "--slots", str(slots), "--port", "0"]
    with as_exits():  # so that everything is ended first
        try:
            with log.open("wb") as out:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=environment,
                    start_new_session=True,
                )
            try:
                running = Trial(_started(process, folder, log), folder, log)
                try:
                    yield running
                finally:
                    _without_interruption(lambda: _end_jobs(running))
            finally:
                _without_interruption(lambda: _end(process, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _started(process: "subprocess.Popen[bytes]", folder: Path, log: Path) -> Configuration:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-8:]
            text = "\n".join(["the service did not start:", *last])
            raise RefusedError(text)
        with suppress(OSError, ValueError, KeyError, ClientError):
            url = json.loads((folder / "server.json").read_text())["url"]
            token = (folder / "token").read_text().strip()
            configuration = Configuration(url, token, "the demo")
            Service(Http(configuration, timeout=2.0)).about()
            return configuration
        time.sleep(POLL)
    raise UnreachableError(f"the service did not answer within {START_TIMEOUT:g} s", f"see {log}")


def _end_jobs(running: Trial) -> None:
    """Stop the jobs that still run, since jobs outlive their service."""
    with suppress(ClientError):
        service = Service(Http(running.configuration, timeout=5.0))
        deadline = time.monotonic() + END_TIMEOUT
        asked: set[str] = set()
        while time.monotonic() < deadline:
            live = {job.id for job in map(model.job, service.jobs()) if not job.has_ended}
            if not live:
                return
            for job_id in live - asked:
                service.ask(job_id, "stop")
            asked |= live
            time.sleep(POLL)


def _end(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """End the service, and whatever else works on its folder."""
    from edt_launch.agent import processes

    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT)
    if process.poll() is None:
        process.kill()
        process.wait()
    processes.kill(processes.mentioning(str(folder)))


def _without_interruption(work: Callable[[], Any]) -> None:
    """A second Ctrl-C must not leave jobs behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *ENDING)}
    try:
        work()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
