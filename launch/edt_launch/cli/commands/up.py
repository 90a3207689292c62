"""``edt up``: a service of its own in a folder that goes away, two users, a job of each; or a Ray cluster."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from edt_launch.cli import model, packing
from edt_launch.cli.client.configuration import Configuration
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Http
from edt_launch.cli.commands.top import seen, snapshot
from edt_launch.cli.errors import ClientError, ExitCode, MistakenError, RefusedError, UnreachableError
from edt_launch.cli.model import ListedJob
from edt_launch.cli.packing import Submission
from edt_launch.cli.screen import note, plural, show, terminal
from edt_launch.cli.session import AsJson, print_json
from edt_launch.cli.signals import ENDING, as_exits, handled
from edt_launch.cli.terminal.overview import picture
from edt_launch.cli.terminal.refresh import watch_lines

SERVE = (sys.executable, "-P", "-m", "edt_launch.cli", "serve")
START_TIMEOUT = 60.0  # seconds within which the service must answer
END_TIMEOUT = 15.0
"""Seconds for the jobs to end, and for the service, before they are killed."""
POLL = 0.1
EXAMPLE = Path(__file__).parents[1] / "example"
PEOPLE: Mapping[str, Sequence[str]] = {
    "ada": ("python", "train.py", "--epochs", "10"),
    "bob": ("python", "train.py", "--epochs", "20"),
}
FOREIGN = ("EDT_URL", "EDT_TOKEN", "EDT_HOME", "EDT_DATABASE", "EDT_HOST", "EDT_HOSTFILE", "EDT_RAY")
"""Variables that are about another service."""
INTERVAL = 0.5
"""Seconds between two looks where there is no terminal."""


@dataclass
class Trial:
    """A running service with jobs in it: their ids, by owner.

    `sizes` are the numbers of workers of each job that were seen, one after the other.
    """

    configuration: Configuration
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
            user = {"name": name, "is_admin": False}
            token = self.service.call("POST", "users", content=user)["token"]
            theirs = Service(Http(Configuration(self.configuration.url, str(token), "demo")))
            spec = {"name": "spirals", "command": list(command), "min": 1, "max": 4}
            self.jobs[name] = str(theirs.submit(Submission(spec, code))["id"])

    def note(self, jobs: Sequence[ListedJob]) -> list[str]:
        """Remember the jobs' sizes; says in lines what is new."""
        news = []
        for job in jobs:
            sizes = self.sizes.setdefault(job.id, [])
            if job.size and (not sizes or sizes[-1] != job.size):
                news.append(f"{job.owner}'s job runs with {plural(job.size, 'worker')}")
                sizes.append(job.size)
        return news

    def own(self, jobs: Iterable[ListedJob]) -> list[ListedJob]:
        """Those of the jobs that were submitted here."""
        return [job for job in jobs if job.id in self.jobs.values()]

    def finished(self, jobs: Sequence[ListedJob]) -> bool:
        """Whether all of them have ended."""
        own = self.own(jobs)
        return len(own) == len(self.jobs) and all(job.has_ended for job in own)

    def summary(self, jobs: Sequence[ListedJob]) -> list[str]:
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
    with as_exits(), ExitStack() as ending:  # signals, too, end everything first
        folder = Path(tempfile.mkdtemp(prefix="edt-demo-"))
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        log = folder / "serve.log"
        environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*SERVE, "--home", str(folder), "--slots", str(slots), "--port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment | {"CUDA_VISIBLE_DEVICES": ""},
                start_new_session=True,
            )
        ending.callback(_uninterrupted, _end, process, folder)
        running = Trial(_started(process, folder, log))
        ending.callback(_uninterrupted, _end_jobs, running)
        yield running


def _started(process: "subprocess.Popen[bytes]", folder: Path, log: Path) -> Configuration:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-8:]
            raise RefusedError("\n".join(["the service did not start:", *last]))
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
                service.call("POST", "jobs", job_id, "stop")
            asked |= live
            time.sleep(POLL)


def _end(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """End the service, and whatever else works on its folder."""
    from edt_launch.agent.system import processes

    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT)
    if process.poll() is None:
        process.kill()
        process.wait()
    processes.kill(processes.mentioning(str(folder)))


def _uninterrupted(work: Callable[..., None], *arguments: Any) -> None:
    """A second Ctrl-C must not leave jobs behind."""
    with handled((signal.SIGINT, *ENDING), signal.SIG_IGN):
        work(*arguments)


def up(
    demo: Annotated[bool, Option("--demo", help="Yes, the demonstration.")] = False,
    ray: Annotated[
        int | None,
        Option(min=1, max=16, metavar="NODES", help="Start a Ray cluster of this many nodes instead."),
    ] = None,
    slots: Annotated[
        int | None,
        Option(min=1, help="Number of slots, 4 by default; with --ray, of each node, 1 by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a service in a temporary folder, submit a job each for two users, show edt top until they end.

    Nothing remains: q and Ctrl-C, too, end the jobs and the service and remove the folder.

    --ray 3 starts a Ray cluster of three nodes on this machine instead, to try it; Ctrl-C ends it.
    """
    if ray is not None:
        raise typer.Exit(_ray_cluster(ray, slots or 1))
    if not demo:
        raise MistakenError("edt up needs --demo or --ray NODES", "'edt serve' runs a service for good")
    slots = slots or 4
    note(f"starting a service with {slots} CPU slots ...")
    with trial(slots) as running:
        running.submit()
        link = running.service.call("POST", "logon-links").get("path")
        note(f"in a browser, where it logs on once: {running.configuration.url}{link}")
        note("ada and bob have submitted a job each; Ctrl-C ends everything")
        is_done = _show(running) if sys.stdout.isatty() else _tell(running)
        jobs = running.own(map(model.job, running.service.jobs()))
        if as_json:
            told = [running.service.job(job.id) | {"sizes": running.sizes[job.id]} for job in jobs]
            print_json({"jobs": told})
        else:
            show(running.summary(jobs))
        for job in jobs:
            if is_done and job.state == "failed":
                note(f"{job.id}: {job.failure or job.reason or 'failed'}")
                show([*running.service.logs(job.id, tail=20).lines()])
        if not is_done:
            note("ending the jobs and the service ...")
    if not is_done:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.SUCCESS if all(job.state == "succeeded" for job in jobs) else ExitCode.FAILED)


def _ray_cluster(nodes: int, slots: int) -> int:
    """Run a Ray cluster on this machine until standard input ends, or Ctrl-C; its exit code."""
    if importlib.util.find_spec("ray") is None:
        raise MistakenError("edt up --ray needs Ray", "pip install 'edt-hvd[ray]'")
    note(f"starting a Ray cluster of {nodes} nodes with {slots} CPU slots each ...")
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:  # sockets have short paths
        words = ["edt_launch.cluster.ray.local", str(nodes), "--cpus", str(slots), "--folder", folder]
        command = [sys.executable, "-P", "-m", *words]
        with (
            handled((signal.SIGINT,), signal.SIG_IGN),  # the cluster ends by it, and we with the cluster
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("edt: "):
                    _tell_of_cluster(line.removeprefix("edt: ").strip(), nodes * slots)
    return process.returncode


def _tell_of_cluster(said: str, slots: int) -> None:
    if " " in said:
        note(said)
        return
    note(f"the cluster is up. In another terminal: edt-launch --ray {said} --max-np {slots} train.py")
    note(f"or: edt serve --ray {said}")
    note("type 'add n9' to add a node, 'drain n2' to announce its end, 'remove n2' or 'kill n2' to lose it")
    note("Ctrl-C ends the cluster")


def _show(running: Trial) -> bool:
    """Show the picture until all jobs have ended, or Ctrl-C; says which of them it was."""
    jobs: Sequence[ListedJob] = ()

    def look() -> Sequence[str]:
        nonlocal jobs
        now = seen(snapshot(running.service), running.configuration.url)
        jobs = now.jobs
        running.note(jobs)
        return picture(now, *terminal())

    return watch_lines(look, until=lambda: running.finished(jobs))


def _tell(running: Trial) -> bool:
    """Tell what happens, where there is no terminal to show it."""
    while True:
        jobs = running.own(map(model.job, running.service.jobs()))
        for line in running.note(jobs):
            note(line)
        if running.finished(jobs):
            return True
        time.sleep(INTERVAL)
