"""A pool with real jobs: the loop in a thread of the test, everything it starts in processes of its own."""

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attacked import journals
from attacked.service import PROGRAMS

from edt_launch.agent.system import processes
from edt_launch.allocator.model import Options
from edt_launch.service.app.settings import load
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.loop import loop
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted

POOLED = PROGRAMS / "pooled.py"

QUICK = Options(imbalance_time=1.0, resize_interval=1.0, resize_interval_costs=0.0, least_change=0.0)
"""An allocator that does at once what others do when it has been wanted for a while."""


class Pool:
    """Four slots, and whoever wants them."""

    def __init__(
        self, folder: Path, devices: int = 4, options: Options = QUICK, horovodrun: bool = False
    ) -> None:
        self.out = folder / "out"
        self.out.mkdir(parents=True)
        self.settings = load(
            home=folder / "home", interval=1.0, coalesce=0.2, protected=0.0, horovodrun=horovodrun
        )
        self.settings.home.mkdir()
        self.store = Store.opened(self.settings.database_url)
        self.bus = Bus()
        self.options = options
        self.stop = threading.Event()
        self.thread: threading.Thread | None = None
        self.ids: list[str] = []
        names = tuple(str(index) for index in range(devices))
        self.store.hosts.put([HostRecord("localhost", names, source="slots")])

    def start(self) -> None:
        arguments = (self.settings, self.store, self.bus, self.stop, self.options)
        self.thread = threading.Thread(target=loop.run, args=arguments, name="pool")
        self.thread.start()

    def submit(self, owner: str, low: int, high: int, *words: object, **fields: Any) -> str:
        return self.submit_command(owner, low, high, self.pooled(*words), **fields)

    def pooled(self, *words: object) -> tuple[str, ...]:
        """The command of a job that counts its steps."""
        return ("python", str(POOLED), str(self.out), *map(str, words))

    def submit_command(
        self,
        owner: str,
        low: int,
        high: int,
        command: tuple[str, ...],
        code: Path | None = None,
        **fields: Any,
    ) -> str:
        """Submit a job that runs a command, in a copy of a folder of `code`."""
        id_ = f"j{'abcdefgh'[len(self.ids)] * 8}"
        self.ids.append(id_)
        for folder in self.settings.paths.job(id_).folders:
            folder.mkdir(parents=True)
        if code is not None:
            shutil.copytree(code, self.settings.paths.job(id_).code / code.name)
            fields["directory"] = code.name
        self.store.jobs.add(JobRecord(id_, owner, command, low, high, time.time(), name=id_[1], **fields))
        self.bus.notify(Topic.DESIRED_STATE)
        return id_

    def wish(self, job: str, wanted: Wanted) -> None:
        self.store.jobs.set_wanted(job, wanted)
        self.bus.notify(Topic.DESIRED_STATE)

    def finish(self, job: str) -> None:
        """Let a job end after its present step."""
        (self.out / f"finish.{job}").touch()
        self.until(lambda: self.job(job).state is State.SUCCEEDED)

    def job(self, job: str) -> JobRecord:
        return self.store.jobs.get(job)

    def rows(self) -> list[JobRecord]:
        return list(self.store.jobs.page(JobQuery(limit=None)).jobs)

    def sizes(self) -> dict[str, int]:
        """Workers that the jobs' files give them, of those that have any."""
        return {row.id: row.size for row in self.rows() if row.size}

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        while not condition():
            assert self.thread is None or self.thread.is_alive(), "the loop has ended"
            time.sleep(0.2)

    def until_sizes(self, *sizes: int) -> None:
        """Wait until the jobs, in the order of their submission, have these numbers of workers."""
        wanted = {id_: size for id_, size in zip(self.ids, sizes, strict=True) if size}
        self.until(lambda: self.sizes() == wanted)

    def until_training(self, *jobs: str) -> None:
        """Wait until the jobs train with as many workers as they are given."""
        for job in jobs:
            self.until(lambda job=job: self._world(job) == self.job(job).size > 0)

    def _world(self, job: str) -> int:
        worlds = [event["size"] for event in self.events(job) if event["event"] == "world"]
        return worlds[-1] if worlds else 0

    def events(self, job: str) -> list[dict[str, Any]]:
        path = self.settings.paths.job(job).output.events
        return journals.rows([path]) if path.exists() else []

    def steps(self, job: str) -> list[int]:
        """The steps that the job's coordinators have done, in order."""
        return journals.steps(self.out, job)

    def overlaps(self) -> list[tuple[journals.Use, journals.Use]]:
        """Workers that had a device at the same time, by what they have written down."""
        return journals.overlaps(self.out)

    def report(self) -> str:
        lines = [f"{row.id} {row.state} {row.size} {row.reason} {row.failure or ''}" for row in self.rows()]
        for id_ in self.ids:
            log = self.settings.paths.job(id_).launcher_log
            lines += [f"--- {id_}", log.read_text() if log.exists() else "no log"]
        return "\n".join(lines)

    def close(self) -> None:
        self.stop.set()
        if self.thread is not None:
            self.thread.join()
        for id_ in self.ids:
            paths = self.settings.paths.job(id_)
            try:
                launcher = json.loads(paths.launcher.read_text())["pid"]
                processes.kill(processes.tree(launcher))
            except FileNotFoundError:
                pass
            processes.kill(processes.having({"EDT_LOGS": str(paths.output.log)}))
        self.store.close()
