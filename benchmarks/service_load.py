"""The job service under load: 1,000 queued jobs, 50 clients that list, look and follow; how long they wait.

The service runs in a process of its own, as `edt serve` does, with a loop that starts no job and writes down
progress of twenty once a second. Each client does what `edt ps -w` does: it asks once a second (`--pause 0`:
without a pause) for all jobs and for one of them, and follows a log besides, which grows by a line a second.
The exit code is 1 if the service's memory reaches the limit or grows while the load is the same.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Self

import psutil

SERVICE = """
import sys, time
from types import SimpleNamespace
from edt_launch.service.app import running
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.bus import Topic

def run(settings, store, bus, stop, **_):
    step = 0
    while not stop.wait(1.0):
        step += 1
        ids = [job.id for job in store.jobs.page(JobQuery(limit=20)).jobs]
        store.jobs.record({job: {"step": step} for job in ids})
        bus.notify(Topic.JOBS)

running.loop = SimpleNamespace(run=run)
from edt_launch.cli.main import main
sys.argv = ["edt", "serve", *sys.argv[1:]]
main()
"""

LIMIT = 300 * 2**20
"""Bytes of memory that the service may have."""

GROWTH = 0.1
"""Part of it that it may grow by from the second quarter of the measurement to the last."""


@dataclass
class Seen:
    """How long answers took, in seconds, by what was asked; for followers, how late lines came."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    bytes: int = 0

    def add(self, kind: str, seconds: float) -> None:
        """Keep how long an answer took."""
        self.seconds.setdefault(kind, []).append(seconds)


@dataclass(frozen=True)
class Address:
    """Where the service is."""

    host: str
    port: int
    token: str


class Connection:
    """A connection that is kept, as simple as it can be, so that what is measured is the service."""

    def __init__(self, address: Address) -> None:
        self._address = address

    async def __aenter__(self) -> Self:
        self.reader, self._writer = await asyncio.open_connection(
            self._address.host, self._address.port, limit=2**24
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, path: str) -> int:
        """Send a request; the length of the body, -1 if it comes in chunks."""
        headers = f"Host: {self._address.host}\r\nAuthorization: Bearer {self._address.token}"
        self._writer.write(f"GET /api/v1{path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        if " 200 " not in head[0]:
            raise RuntimeError(head[0])
        lengths = [line.partition(":")[2] for line in head if line.startswith("content-length:")]
        return int(lengths[0]) if lengths else -1

    async def get(self, path: str) -> int:
        """The length of an answer that was read to its end."""
        length = await self.ask(path)
        await self.reader.readexactly(length)
        return length


async def look(
    address: Address, ids: list[str], seen: Seen, until: float, chance: random.Random, pause: float
) -> None:
    """A client that asks again and again."""
    await asyncio.sleep(chance.uniform(0.0, pause))
    async with Connection(address) as connection:
        while time.monotonic() < until:
            job = chance.choice(ids)
            for kind, path in (
                ("list 1,000 jobs", "/jobs?limit=1000"),
                ("list 100 jobs", "/jobs?limit=100"),
                ("show a job", f"/jobs/{job}"),
                ("why", f"/jobs/{job}/why"),
            ):
                begin = time.monotonic()
                length = await connection.get(path)
                seen.bytes += length
                seen.add(kind, time.monotonic() - begin)
            await asyncio.sleep(pause)


async def follow(address: Address, job: str, seen: Seen, until: float) -> None:
    """A client that follows a log whose lines say when they were written."""
    async with Connection(address) as connection:
        await connection.ask(f"/jobs/{job}/logs?follow=1&tail=0")
        while (left := until - time.monotonic()) > 0:
            try:
                line = await asyncio.wait_for(connection.reader.readline(), left)
            except TimeoutError:
                return
            if line.startswith(b"written "):
                seen.add("follow a log (lateness of lines)", time.time() - float(line.split()[1]))


async def write(logs: list[Path], until: float) -> None:
    while time.monotonic() < until:
        for log in logs:
            with log.open("a") as file:
                file.write(f"written {time.time()}\n")
        await asyncio.sleep(1.0)


async def watch(process: psutil.Process, memory: list[int], until: float) -> None:
    while time.monotonic() < until:
        memory.append(process.memory_info().rss)
        await asyncio.sleep(0.5)


@contextmanager
def service(home: Path) -> Iterator[tuple[Address, psutil.Process]]:
    command = [sys.executable, "-c", SERVICE, "--home", str(home), "--port", "0", "--slots", "4"]
    with (home / "output").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        while not (home / "server.json").is_file():
            if process.poll() is not None:
                raise SystemExit((home / "output").read_text())
            time.sleep(0.1)
        host, port = json.loads((home / "server.json").read_text())["url"].removeprefix("http://").split(":")
        yield Address(host, int(port), (home / "token").read_text().strip()), psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def fill(home: Path, count: int) -> list[str]:
    """Queue jobs: the same as submitting them, without the requests."""
    from edt_launch.service.app.first_start import this_user
    from edt_launch.service.app.home import Home
    from edt_launch.service.app.settings import Settings
    from edt_launch.service.db.store import Store
    from edt_launch.service.jobs.records import JobRecord
    from edt_launch.service.jobs.submission import new_id

    store = Store.opened(Settings(home=home).database_url)
    ids = [new_id() for _ in range(count)]
    for number, job in enumerate(ids):
        command = ("python", "train.py", "--epochs", "10", "--seed", str(number))
        record = JobRecord(job, this_user(), command, 1, 4, time.time(), environment={"SEED": str(number)})
        store.jobs.add(record)
        for folder in Home(home).job(job).folders:
            folder.mkdir(parents=True)
    store.close()
    return ids


async def load(
    address: Address, process: psutil.Process, ids: list[str], home: Path, options: argparse.Namespace
) -> tuple[Seen, list[int]]:
    """All clients at once; what they saw, and the service's memory all the while."""
    seen, memory, chance = Seen(), [], random.Random(0)
    followed = ids[:10]
    until = time.monotonic() + options.seconds
    logs = [home / "jobs" / job / "log" / "launcher.log" for job in followed]
    clients = range(options.clients)
    await asyncio.gather(
        *(look(address, ids, seen, until, chance, options.pause) for _ in clients),
        *(follow(address, followed[n % len(followed)], seen, until) for n in clients),
        write(logs, until),
        watch(process, memory, until),
    )
    return seen, memory


def report(seen: Seen, memory: list[int], before: int, seconds: float) -> dict[str, Any]:
    rows = {}
    for kind, values in seen.seconds.items():
        cuts = quantiles(values, n=100, method="inclusive")
        rows[kind] = {
            "count": len(values),
            "p50": cuts[49],
            "p95": cuts[94],
            "p99": cuts[98],
            "max": max(values),
        }
    quarter = len(memory) // 4
    return {
        "requests_per_second": sum(row["count"] for row in rows.values()) / seconds,
        "megabytes_per_second": seen.bytes / seconds / 1e6,
        "milliseconds": {
            kind: {name: value if name == "count" else round(1000 * value, 1) for name, value in row.items()}
            for kind, row in rows.items()
        },
        "memory": {
            "before": before,
            "second_quarter": round(median(memory[quarter : 2 * quarter])),
            "last_quarter": round(median(memory[-quarter:])),
            "most": max(memory),
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two rounds of a client")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.pop("EDT_HOME", None)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with service(home) as (address, process):
            ids = fill(home, options.jobs)
            before = process.memory_info().rss
            seen, memory = asyncio.run(load(address, process, ids, home, options))
    found = report(seen, memory, before, options.seconds)
    kept = found["memory"]
    good = kept["most"] < LIMIT and kept["last_quarter"] <= kept["second_quarter"] * (1 + GROWTH)
    if options.json:
        print(json.dumps(found))
    else:
        show(found, options)
    return 0 if good else 1


def show(found: dict[str, Any], options: argparse.Namespace) -> None:
    print(
        f"{options.jobs} queued jobs, {options.clients} clients, {options.seconds:g} s, "
        f"{os.cpu_count()} cores"
    )
    print(f"{found['requests_per_second']:.0f} requests a second, {found['megabytes_per_second']:.1f} MB/s\n")
    print(f"{'milliseconds':36}{'count':>8}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}")
    for kind, row in found["milliseconds"].items():
        figures = "".join(f"{row[name]:9.1f}" for name in ("p50", "p95", "p99", "max"))
        print(f"{kind:36}{row['count']:8}{figures}")
    memory = {name: f"{value / 2**20:.0f} MiB" for name, value in found["memory"].items()}
    print(
        "\nmemory of the service: "
        + ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in memory.items())
    )


if __name__ == "__main__":
    sys.exit(main())
