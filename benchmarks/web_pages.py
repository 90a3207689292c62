"""What the service's pages cost: 1,000 jobs on 256 devices, 50 open pages, jobs that change.

    python benchmarks/web_pages.py [--seconds 30] [--pages 50]

Prints each figure beside its budget; the exit code is 1 if one is exceeded. The service runs in a process of
its own, without its loop, in whose place progress is noted once a second and a job is resized every five. An
open page does what live.js does: it has a stream, and asks for its fragment and the picture again after a
change of a job's size. Half of them show the pool, half the jobs.
"""

import argparse
import contextlib
import gc
import gzip
import http.client
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import psutil

JOBS, HOSTS, DEVICES = 1000, 32, 8
OWNERS = ("ann", "bob", "cem", "dora")
EVERY = 5.0
"""Seconds from one resize to the next; progress is noted once a second."""

PAUSE = 5.5
"""Seconds between two loads of a page: more than for which the service keeps what it is made from."""

BUDGETS = {
    "pool: processor seconds of a page": 0.1,
    "pool: kB gzipped": 150.0,
    "jobs: processor seconds of a page": 0.3,
    "assets of a page without ECharts: kB gzipped": 30.0,
    "open pages: percent of a core": 10.0,
    "open pages: MiB more": 50.0,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pages", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (port, token, pid):
        service = psutil.Process(pid)
        found = page_costs(port, token, service) | {"assets of a page without ECharts: kB gzipped": assets()}
        found |= open_pages(port, token, service, options.pages, options.seconds)
    is_kept = True
    for name, most in BUDGETS.items():
        is_kept &= found[name] <= most
        print(f"{name:45} {found[name]:8.3f}  of {most:g}{'' if found[name] <= most else '  EXCEEDED'}")
    return 0 if is_kept else 1


def page_costs(port: int, token: str, service: psutil.Process) -> dict[str, float]:
    """Seconds and bytes of pages as they are loaded, at times when nothing of them is kept ready."""
    cookie = log_on(port, token)
    found: dict[str, float] = {}
    for name in ("pool", "jobs"):
        used, took, sizes = [], [], []
        for _ in range(9):
            begin, before = time.perf_counter(), processor_time(service)
            body = get(port, f"/{name}", cookie)
            took.append(time.perf_counter() - begin)
            used.append(processor_time(service) - before)
            sizes.append(len(body) / 1000)
            time.sleep(PAUSE)
        found[f"{name}: processor seconds of a page"] = statistics.mean(used)
        found[f"{name}: kB gzipped"] = statistics.median(sizes)
        print(f"{name}: {statistics.median(took):.3f} seconds until the page has been sent")
    return found


def assets() -> float:
    """The kB of the files that all pages load, and of the largest script of one page, but for ECharts."""
    from edt_launch.service.web.app import STATIC

    scripts = {file.name: len(gzip.compress(file.read_bytes())) for file in STATIC.glob("*.js")}
    common = sum(scripts.pop(name) for name in ("forms.js", "live.js"))
    files = [*STATIC.glob("*.css"), *STATIC.glob("*.svg"), *STATIC.glob("vendor/htmx*.js")]
    common += sum(len(gzip.compress(file.read_bytes())) for file in files)
    return (common + max(scripts.values())) / 1000


def open_pages(
    port: int, token: str, service: psutil.Process, pages: int, seconds: float
) -> dict[str, float]:
    """What so many open pages cost the service beyond what it costs without them."""
    cookie = log_on(port, token)
    get(port, "/pool", cookie)
    alone = cpu(service, seconds / 3)
    before = service.memory_info().rss
    stop = threading.Event()
    threads = [
        threading.Thread(target=watch, args=(port, cookie, ("pool", "jobs")[number % 2], stop))
        for number in range(pages)
    ]
    for thread in threads:
        thread.start()
    time.sleep(5.0)  # all have their first state
    share = cpu(service, seconds)
    after = service.memory_info().rss
    stop.set()
    for thread in threads:
        thread.join()
    print(f"without open pages: {100 * alone:.1f} % of a core")
    return {
        "open pages: percent of a core": 100 * (share - alone),
        "open pages: MiB more": (after - before) / 2**20,
    }


def cpu(process: psutil.Process, seconds: float) -> float:
    """Cores that a process uses."""
    begin, used = time.monotonic(), processor_time(process)
    time.sleep(seconds)
    return (processor_time(process) - used) / (time.monotonic() - begin)


def processor_time(process: psutil.Process) -> float:
    """Seconds of a core that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def watch(port: int, cookie: str, page: str, stop: threading.Event) -> None:
    """What an open page does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/v1/stream", headers={"Cookie": cookie})
    answer = connection.getresponse()
    shapes: dict[str, str] = {}
    is_known = False
    while not stop.is_set():
        line = answer.readline()
        if not line.startswith(b"data:"):
            continue
        is_other = False
        for job in json.loads(line[5:])["jobs"]:
            shape = f"{job['state']} {job['target']} {job['hosts']}"
            is_other |= is_known and shapes.get(job["id"]) != shape
            shapes[job["id"]] = shape
        is_known = True
        if is_other and not stop.wait(0.5):
            get(port, f"/{page}", cookie, {"HX-Request": "true"})
            if page == "pool":
                get(port, "/api/v1/timeline?last=3600", cookie)


def get(port: int, path: str, cookie: str, headers: dict[str, str] | None = None) -> bytes:
    """A body as it is sent, gzipped if the service does that."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(
            "GET", path, headers={"Cookie": cookie, "Accept-Encoding": "gzip", **(headers or {})}
        )
        answer = connection.getresponse()
        body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {body[:200]!r}")
    return body


def log_on(port: int, token: str) -> str:
    """The cookie of a new session."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        connection.request("POST", "/logon", body=f"secret={token}", headers=form)
        return connection.getresponse().getheader("set-cookie", "").partition(";")[0]


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[int, str, int]]:
    """A service with all these jobs, in another process: its port, a token, its process number."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    stop = context.Event()
    process = context.Process(target=serve, args=(folder, theirs, stop))
    process.start()
    try:
        port, token = ours.recv()
        yield port, token, process.pid or 0
    finally:
        stop.set()
        process.join()


def serve(folder: Path, told: Any, stop: Event) -> None:
    """The service: everything but the loop, in whose place something changes now and then."""
    import uvicorn

    from edt_launch.service import tokens
    from edt_launch.service.api.app import create_app
    from edt_launch.service.bus import Bus
    from edt_launch.service.context import Context
    from edt_launch.service.database.records import UserRecord
    from edt_launch.service.database.store import Store
    from edt_launch.service.first_start import make_home
    from edt_launch.service.settings import Settings

    settings = Settings(home=folder)
    make_home(settings.paths)
    store = Store.opened(f"sqlite:///{folder / 'edt.db'}")
    context = Context(settings, store, Bus(), time.time)
    store.accounts.add_user(UserRecord("ann", True))
    token, _ = tokens.issue(store.accounts, "ann", "benchmark", time.time())
    ids = fill(store)
    config = uvicorn.Config(
        create_app(context), port=0, log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    told.send((server.servers[0].sockets[0].getsockname()[1], token))
    gc.freeze()  # as `edt serve` does
    step = 0
    while not stop.wait(1.0):
        step += 1
        change(context, ids, step)
    context.stop.set()
    server.should_exit = True
    thread.join()
    store.close()


def fill(store: Any) -> list[str]:
    """Jobs that run on all devices and jobs that wait, and an hour of their history; those that run."""
    from edt_launch.service.database.records import AllocationRecord, HostRecord, JobRecord
    from edt_launch.service.states import State

    hosts = [HostRecord(f"node{number:02}", tuple(map(str, range(DEVICES)))) for number in range(HOSTS)]
    store.hosts.put(hosts)
    now, running = time.time(), []
    for number in range(JOBS):
        name = "".join("abcdefghij"[int(digit)] for digit in f"{number:08}")
        owner = OWNERS[number % len(OWNERS)]
        job = JobRecord(
            f"j{name}", owner, ("python", "train.py"), 1, 4, now - 7200 + number, name=f"job {number}"
        )
        is_running = number < HOSTS * DEVICES // 4
        if is_running:
            held = ((f"node{number // 2:02}", tuple(str(4 * (number % 2) + device) for device in range(4))),)
            job = replace(job, state=State.RUNNING, size=4, target=4, held=held, share=4.0, total_steps=10**6)
            running.append(job.id)
            store.history.add(
                AllocationRecord(job.id, owner, now - 3600 + 60 * at, 4 if at % 2 else 2, 2 if at % 2 else 4,
                                 ((held[0][0], held[0][1][: 2 if at % 2 else 4]),), "its fair share")
                for at in range(60)
            )  # fmt: skip
        store.jobs.add(job)
    return running


def change(context: Any, ids: list[str], step: int) -> None:
    """Progress of all jobs that run, and now and then another size of one."""
    from edt_launch.service.bus import Topic
    from edt_launch.service.database.records import AllocationRecord

    context.store.jobs.record({job: {"step": step, "throughput": 1.0} for job in ids})
    if step % EVERY == 0:
        job = context.store.jobs.get(ids[int(step // EVERY) % len(ids)])
        after = 2 if job.size == 4 else 4
        host, devices = job.held[0][0], (*job.held[0][1], "6", "7")
        held = ((host, tuple(devices[:after])),)
        context.store.history.add(
            [AllocationRecord(job.id, job.owner, time.time(), job.size, after, held, "its fair share")]
        )
        context.store.jobs.record({job.id: {"size": after, "target": after, "held": held}})
        context.bus.notify(Topic.JOBS)
    context.bus.notify(Topic.PROGRESS)


if __name__ == "__main__":
    raise SystemExit(main())
