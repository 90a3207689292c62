"""`edt serve` in a process of its own, with its loop, and clients that speak to it over HTTP."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import requests

from attacked import journals
from edt_launch.agent.system import processes
from edt_launch.service.app.home import Home

TIMEOUT = 60.0
"""Seconds until a client gives up."""

QUICK = ("--interval", "0.3", "--coalesce", "0.1")
"""An allocator that looks more often than others do."""

POLL = 0.05
"""Seconds between two looks at whether something is so."""

PROGRAMS = Path(__file__).parent / "programs"
CODE = {program.name: program.read_bytes() for program in PROGRAMS.glob("*.py")}
"""What jobs run."""

Answer = requests.Response


def tar(files: Mapping[str, bytes]) -> bytes:
    """An archive of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class Service:
    """A service in `folder/home`, whose jobs write into `folder/out`."""

    def __init__(
        self, folder: Path, *arguments: str, slots: int | None = 4, files: int | None = None
    ) -> None:
        self.out = folder / "out"
        self.out.mkdir(parents=True, exist_ok=True)
        self.home = Home(folder / "home")
        self.log = folder / "serve.log"
        self._words = (
            "--home",
            str(self.home.root),
            *(() if slots is None else ("--slots", str(slots))),
            "--port",
            "0",
            *QUICK,
            *arguments,
        )
        self._limited = () if files is None else ("prlimit", f"--nofile={files}:{files}")
        self.environment = {**os.environ}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; `ready` waits until it serves."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._limited, sys.executable, "-m", "edt_launch.cli", "serve", *self._words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_ready(self) -> bool:
        """Whether the present process serves."""
        try:
            return bool(self.process and json.loads(self.home.server.read_text())["pid"] == self.process.pid)
        except FileNotFoundError:
            return False

    def ready(self) -> "Service":
        """Wait until it serves."""
        self.until(lambda: self.is_ready)
        return self

    @staticmethod
    def _is_alive(pid: int) -> bool:
        """Whether a process has not ended; also asked by processes that are not its parent."""
        return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition; the limit is pytest's timeout."""
        while not condition():
            assert self.process is None or self._is_alive(self.process.pid), self.report()
            time.sleep(POLL)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end(self) -> int:
        """End it with SIGTERM; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT)

    # Clients.

    @property
    def server(self) -> dict[str, Any]:
        """What it says about itself: `url`, `pid` and perhaps `certificate`."""
        return dict(json.loads(self.home.server.read_text()))

    @property
    def certificate(self) -> str | bool:
        """What its certificate is compared with: the file that has it, or the usual ones."""
        return str(self.server.get("certificate", "")) or True

    @property
    def admin(self) -> str:
        """The administrator's token."""
        return self.home.token.read_text().strip()

    def ask(self, method: str, path: str, *, token: str | None = None, **arguments: Any) -> Answer:
        """Send a request, as the administrator unless there is a `token`."""
        headers = {"Authorization": f"Bearer {token or self.admin}", **arguments.pop("headers", {})}
        return requests.request(
            method,
            f"{self.server['url']}/api/v1{path}",
            headers=headers,
            verify=self.certificate,
            timeout=TIMEOUT,
            **arguments,
        )

    def get(self, path: str, **arguments: Any) -> Any:
        """What an answer holds; anything but a success raises `requests.HTTPError`."""
        answer = self.ask("GET", path, **arguments)
        answer.raise_for_status()
        return answer.json()

    def user(self, name: str) -> str:
        """Add a user; their token."""
        answer = self.ask("POST", "/users", json={"name": name})
        answer.raise_for_status()
        return str(answer.json()["token"])

    def post_job(
        self, program: str, *words: object, token: str | None = None, key: str | None = None, **spec: Any
    ) -> Answer:
        """Submit a job that runs one of the programs of `CODE`."""
        spec["command"] = ["python", program, str(self.out), *map(str, words)]
        return self.post_archive(tar(CODE), token=token, key=key, **spec)

    def post_archive(
        self, archive: bytes, *, token: str | None = None, key: str | None = None, **spec: Any
    ) -> Answer:
        """Submit a job with an archive of code."""
        return self.ask(
            "POST",
            "/jobs",
            token=token,
            data={"spec": json.dumps({"command": ["true"], **spec})},
            files={"code": ("code.tar.gz", archive)},
            headers={} if key is None else {"Idempotency-Key": key},
        )

    def edt(self, *words: str, token: str) -> "subprocess.CompletedProcess[bytes]":
        """Run the command of clients, as a user."""
        variables = {"EDT_URL": self.server["url"], "EDT_TOKEN": token, "COLUMNS": "80"}
        if isinstance(self.certificate, str):
            variables["SSL_CERT_FILE"] = self.certificate
        return subprocess.run(
            [sys.executable, "-m", "edt_launch.cli", *words],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=TIMEOUT,
        )

    def submit(self, program: str, *words: object, **arguments: Any) -> str:
        """The id of a job that has been submitted."""
        answer = self.post_job(program, *words, **arguments)
        assert answer.status_code == requests.codes.created, answer.text
        return str(answer.json()["id"])

    def job(self, job: str) -> dict[str, Any]:
        """What it says about a job."""
        return dict(self.get(f"/jobs/{job}"))

    def jobs(self) -> list[dict[str, Any]]:
        """What it says about all jobs."""
        return list(self.get("/jobs?limit=1000&all=1")["jobs"])

    def until_training(self, *jobs: str) -> None:
        """Wait until the jobs train with as many workers as they are given."""
        for job in jobs:
            self.until(lambda job=job: self.world(job) == self.job(job)["size"] > 0)

    # What jobs leave.

    def events(self, job: str) -> list[dict[str, Any]]:
        """What a job's launcher has written down."""
        path = self.home.job(job).output.events
        return journals.rows([path]) if path.is_file() else []

    def has_begun(self, job: str) -> bool:
        """Whether a process of a job has written down that it has begun."""
        return any(self.out.glob(f"{job}.*.jsonl"))

    def world(self, job: str) -> int:
        """Workers of a job's present world."""
        worlds = [event["size"] for event in self.events(job) if event["event"] == "world"]
        return worlds[-1] if worlds else 0

    def steps(self, job: str) -> list[int]:
        """The steps that the job's coordinators have done, in order."""
        return journals.steps(self.out, job)

    def finish(self, job: str) -> None:
        """Have pooled.py end after its present step."""
        (self.out / f"finish.{job}").touch()

    def report(self) -> str:
        """The ends of its log and of its launchers' logs."""
        logs = [self.log, *self.home.jobs.glob("*/launcher.log")]
        return "\n".join(f"--- {log}\n{log.read_text()[-3000:]}" for log in logs if log.exists())

    def close(self) -> None:
        """Leave nothing behind, whatever the test did."""
        self.kill()
        for folder in self.home.jobs.glob("j*"):
            paths = self.home.job(folder.name)
            if paths.launcher.is_file():
                with contextlib.suppress(ValueError, KeyError):  # a test has put something else there
                    processes.kill(processes.tree(json.loads(paths.launcher.read_text())["pid"]))
            processes.kill(processes.having({"EDT_LOGS": str(paths.output.log)}))
