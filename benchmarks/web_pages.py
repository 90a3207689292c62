"""What the service's pages cost: 1,000 jobs on 256 devices, 50 open pages, jobs that change, experiments.

    python benchmarks/web_pages.py [--seconds 30] [--pages 50] [--chromium /usr/bin/chromium]

Prints each figure beside its budget, and how fast this machine is; the exit code is 1 if a budget is
exceeded. The service runs in a process of its own, without its loop, in whose place progress is noted once
a second and a job is resized every five. An open page does what live.js does: it has a stream, and asks for
its fragment and the picture again after a change of a job's size. Half of them show the pool, half the
jobs. What pages cost a browser is measured in a real one, how long they need to show a resize, and the next
service after the present one was killed.
"""

import argparse
import contextlib
import gc
import gzip
import http.client
import json
import math
import multiprocessing
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import machine
import psutil
import web_contents

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
    "assets of a page without ECharts: kB gzipped": 150.0,
    "open pages: percent of a core": 10.0,
    "open pages: MiB more": 50.0,
    "pool: seconds until something is seen": 1.0,
    "jobs: seconds until something is seen": 1.0,
    "pool: ms of script a second in which jobs go on": 4.0,
    "jobs: ms of script a second in which jobs go on": 4.0,
    "pool: seconds until a resize is seen, at most": 2.0,
    "pool: seconds from the next service to its state": 5.0,
    **{f"{name}: seconds until it has been sent": 0.3 for name in web_contents.PATHS},
}

LOADED = re.compile(r"static\('([^']+)'\)")
"""A file that a template loads."""

PAINTED = """new Promise((done) => new PerformanceObserver((list) =>
    done(list.getEntriesByName("first-contentful-paint")[0].startTime)
).observe({type: "paint", buffered: true}))"""
"""Gives the milliseconds until a page has shown a text or a picture."""

WATCHED = """() => {
    window.seen = [];
    const look = () => {
        const sizes = {};
        for (const cell of document.querySelectorAll("a.cell[href]")) {
            const job = cell.getAttribute("href").split("/").pop();
            sizes[job] = (sizes[job] ?? 0) + 1;
        }
        seen.push([Date.now() / 1000, sizes]);
    };
    look();
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributes: true });
}"""
"""Keeps, from now on, when the pool's page has changed and how many devices it showed each job to have."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--chromium", type=Path, default=Path("/usr/bin/chromium"))
    options = parser.parse_args()
    if not options.chromium.exists():
        sys.exit(f"{options.chromium} is not there: install Chromium, or name it by --chromium")
    with tempfile.TemporaryDirectory() as folder:
        with serving(Path(folder)) as (port, token, pid):
            service = psutil.Process(pid)
            found = page_costs(port, token, service)
            found |= open_pages(port, token, service, options.pages, options.seconds)
        with serving(Path(folder) / "experiments", contents=fill_everything) as (port, token, _):
            found |= experiment_costs(port, token)
        found |= in_a_browser(Path(folder), options.chromium, options.seconds)
    found["assets of a page without ECharts: kB gzipped"] = assets()
    is_kept = True
    print(machine.speed())
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


def experiment_costs(port: int, token: str) -> dict[str, float]:
    """Seconds until pages with many experiments, runs and trials have been sent."""
    cookie = log_on(port, token)
    found: dict[str, float] = {}
    for name, path in web_contents.PATHS.items():
        took = []
        for _ in range(5):
            begin = time.perf_counter()
            body = get(port, path, cookie)
            took.append(time.perf_counter() - begin)
        found[f"{name}: seconds until it has been sent"] = statistics.median(took)
        print(f"{name}: {took[0]:.3f} seconds the first time, {len(body) / 1000:.1f} kB gzipped")
    return found


def in_a_browser(folder: Path, chromium: Path, seconds: float) -> dict[str, float]:
    """What pages cost a browser that has never been there, and how long they need after a kill."""
    from playwright.sync_api import sync_playwright

    found: dict[str, float] = {}
    with sync_playwright() as playwright, contextlib.ExitStack() as services:
        port, token, pid = services.enter_context(serving(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name in ("jobs", "pool"):
            seen = []
            for _ in range(5):
                for earlier in browser.contexts:
                    earlier.close()  # all pages of a site count as one where scripts are measured
                context = browser.new_context(base_url=f"http://127.0.0.1:{port}")
                key, _, value = log_on(port, token).partition("=")
                context.add_cookies([{"name": key, "value": value, "url": f"http://127.0.0.1:{port}"}])
                page = context.new_page()
                page.goto(f"/{name}")
                seen.append(page.evaluate(PAINTED) / 1000)
            found[f"{name}: seconds until something is seen"] = statistics.median(seen)
            page.get_by_text("live", exact=True).wait_for()
            page.wait_for_timeout(3000)
            session = context.new_cdp_session(page)
            session.send("Performance.enable")
            times = [script_seconds(session)]
            for _ in range(int(seconds)):
                page.wait_for_timeout(1000)
                times.append(script_seconds(session))
            spent = [1000 * (after - before) for before, after in pairwise(times)]
            usual = statistics.median(spent)
            found[f"{name}: ms of script a second in which jobs go on"] = usual
            resize = (sum(spent) - usual * len(spent)) * EVERY / len(spent)
            print(f"{name}: {resize:.0f} ms of script more for a resize, with fetching and drawing anew")
        found["pool: seconds until a resize is seen, at most"] = seconds_unseen(page, seconds)
        psutil.Process(pid).kill()
        page.get_by_text("no connection since").wait_for()
        services.enter_context(serving(folder, port))
        begin = time.monotonic()
        page.get_by_text("live", exact=True).wait_for()
        found["pool: seconds from the next service to its state"] = time.monotonic() - begin
        browser.close()
    return found


def seconds_unseen(page: Any, seconds: float) -> float:
    """The most seconds from when a resize is written down until the pool's page shows the new size."""
    begin = time.time()
    page.evaluate(WATCHED)
    page.wait_for_timeout(1000 * max(seconds, 3 * EVERY))
    until = time.time() - EVERY  # later ones may still be on their way
    watched = page.evaluate("window.seen")
    resizes = page.request.get(f"/api/v1/allocations?since={begin}").json()["allocations"]
    took = []
    for one in resizes:
        if one["time"] < until:
            later = [(at, sizes) for at, sizes in watched if at >= one["time"]]
            shown = (at for at, sizes in later if sizes.get(one["job"]) == one["to"])
            took.append(next(shown, math.inf) - one["time"])
    return max(took)


def script_seconds(session: Any) -> float:
    """Seconds that a page's scripts have run."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "ScriptDuration")


def assets() -> float:
    """The kB of the files that all pages load, and of the scripts of the page with most, but for ECharts."""
    from edt_launch.service.web.app import STATIC
    from edt_launch.service.web.templating import HERE, TEMPLATES

    def size(names: Iterable[str]) -> int:
        return sum(len(gzip.compress((STATIC / name).read_bytes())) for name in names)

    pages = (path for folder in TEMPLATES for path in folder.rglob("*.html"))
    loaded = {path: LOADED.findall(path.read_text()) for path in pages}
    common = loaded.pop(HERE / "templates" / "base.html")
    own = ([name for name in names if "echarts" not in name] for names in loaded.values())
    return (size(common) + max(map(size, own))) / 1000


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
def serving(
    folder: Path, port: int = 0, contents: Callable[[Any], None] | None = None
) -> Iterator[tuple[int, str, int]]:
    """A service with all these jobs, in another process: its port, a token, its process number."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(folder, port, theirs, contents or fill))
    process.start()
    theirs.close()
    try:
        port, token = ours.recv()
        yield port, token, process.pid or 0
    finally:
        ours.close()  # it ends by that, and may have been killed before
        process.join()


def serve(folder: Path, port: int, told: Any, contents: Callable[[Any], None]) -> None:
    """The service: everything but the loop, in whose place something changes now and then."""
    import uvicorn

    from edt_launch.service.accounts import tokens
    from edt_launch.service.accounts.records import UserRecord
    from edt_launch.service.app.application import create_app
    from edt_launch.service.app.context import Context
    from edt_launch.service.app.first_start import make_home
    from edt_launch.service.app.settings import Settings
    from edt_launch.service.bus import Bus
    from edt_launch.service.db.store import Store

    settings = Settings(home=folder)
    make_home(settings.paths)
    store = Store.opened(f"sqlite:///{folder / 'edt.db'}")
    context = Context(settings, store, Bus(), time.time)
    if store.accounts.user("ann") is None:
        store.accounts.add_user(UserRecord("ann", True))
        contents(context)
    ids = [job.id for job in store.jobs.holders() if job.held]
    token, _ = tokens.issue(store.accounts, "ann", f"benchmark {time.time()}", time.time())
    config = uvicorn.Config(
        create_app(context), port=port, log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    told.send((server.servers[0].sockets[0].getsockname()[1], token))
    gc.freeze()  # as `edt serve` does
    step = 0
    while not told.poll(1.0):
        step += 1
        change(context, ids, step)
    context.stop.set()
    server.should_exit = True
    thread.join()
    store.close()


def fill(context: Any) -> None:
    """Jobs that run on all devices and jobs that wait, and an hour of their history."""
    from edt_launch.service.cluster.records import AllocationRecord, HostRecord
    from edt_launch.service.jobs.records import JobRecord
    from edt_launch.service.jobs.states import State

    store = context.store
    hosts = [HostRecord(f"node{number:02}", tuple(map(str, range(DEVICES)))) for number in range(HOSTS)]
    store.hosts.put(hosts)
    now = time.time()
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
            store.history.add(
                AllocationRecord(job.id, owner, now - 3600 + 60 * at, 4 if at % 2 else 2, 2 if at % 2 else 4,
                                 ((held[0][0], held[0][1][: 2 if at % 2 else 4]),), "its fair share")
                for at in range(60)
            )  # fmt: skip
        store.jobs.add(job)


def fill_everything(context: Any) -> None:
    """The same, and experiments and a search."""
    fill(context)
    web_contents.fill(context)


def change(context: Any, ids: list[str], step: int) -> None:
    """Progress of all jobs that run, and now and then another size of one."""
    from edt_launch.service.bus import Topic
    from edt_launch.service.cluster.records import AllocationRecord

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
