"""Pictures of every page, to be looked at. `EDT_PICTURES=FOLDER` keeps them: README has some of them."""

import json
import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from edt_launch.service.database.records import AllocationRecord, Held, HostRecord
from edt_launch.service.states import State
from pages import LOOKS, Site
from world import NOW

LEAST = 8_000
"""Bytes of a picture that shows something."""

HISTORY: dict[str, list[tuple[float, int]]] = {
    "digits": [(3300, 8), (2400, 4), (900, 6)],
    "speech": [(2400, 4), (1500, 2), (900, 0)],
    "ranking": [(1500, 2)],
}
"""Of each job, seconds ago and the number of its devices from then on."""

PHASES = {
    "detect": 0.3,
    "prepare": 1.2,
    "drain": 0.4,
    "rendezvous": 0.9,
    "transfer": 0.8,
    "first_step": 0.4,
}

LOSSES = (1500,)
"""Seconds ago when workers failed."""

OWNERS = {"digits": "ann", "speech": "bob", "ranking": "bob"}


def devices(first: int, count: int) -> Held:
    names = [(f"node{(number // 4) + 1}", str(number % 4)) for number in range(first, first + count)]
    hosts = dict.fromkeys(host for host, _ in names)
    return tuple((host, tuple(device for at, device in names if at == host)) for host in hosts)


def populate(site: Site) -> str:
    """A pool with a past; gives the job to be shown."""
    store, world = site.world.store, site.world
    store.hosts.put([HostRecord(f"node{number}", ("0", "1", "2", "3"), source="hosts") for number in (1, 2)])
    changes, ids = [], {}
    for name, sizes in HISTORY.items():
        owner = getattr(world, OWNERS[name])
        ids[name] = job = world.submit(owner, name=name, command=["python", "train.py"], max=8)["id"]
        world.go(job, State.STARTING, State.RUNNING)
        before = 0
        for ago, size in sizes:
            held = devices(0 if name == "digits" else 8 - size if name == "speech" else 6, size)
            changes.append(
                AllocationRecord(
                    job,
                    OWNERS[name],
                    NOW - ago,
                    before,
                    size,
                    held,
                    "its fair share",
                    lost=int(ago in LOSSES),
                )
            )
            before = size
        store.jobs.record(
            {
                job: {
                    "size": before,
                    "target": before,
                    "held": held if before else (),
                    "share": 4.0,
                    "step": 740,
                }
            }
        )
    store.history.add(sorted(changes, key=lambda one: one.time))
    world.go(ids["speech"], State.SUCCEEDED)
    why = {
        "binding": "share",
        "share": 6.0,
        "target": 6,
        "path": [["", 8.0], ["ann", 4.0], [ids["digits"], 4.0]],
        "text": "has 6: its fair share is 4, and nobody else wants the other 2",
        "change": "Another job would take them.",
    }
    fields = {"why": why, "reason": why["text"], "total_steps": 1000, "throughput": 2.4, "loss": 0.21}
    store.jobs.record({ids["digits"]: fields})
    world.submit(world.ann, name="too large", min=16, max=16)
    folder = site.world.files(ids["digits"])
    folder.output.events.write_text("".join(events()))
    printed = [f"[{rank}] epoch 3, step {step}: loss 0.2{rank}\n" for step in range(40) for rank in (0, 1)]
    folder.launcher_log.write_text("".join(printed))
    (folder.output.model / "train").mkdir(parents=True, exist_ok=True)
    (folder.output.model / "train" / "model.pt").write_bytes(b"0" * 250_000)
    return ids["digits"]


def events() -> list[str]:
    """A course of 740 steps with two resizes."""
    noise, found = random.Random(1), list[dict[str, Any]]()
    time, size = NOW - 3300.0, 8
    for step in range(1, 741):
        if after := {200: 4, 560: 6}.get(step):
            time += 2.5
            sizes = {"generation": step, "from": size, "to": after}
            found.append({"event": "resumed", "time": time, **sizes, "pause": 2.5, "phases": PHASES})
            size = after
        time += 26.0 / size
        loss = 0.2 + 2.1 * math.exp(-step / 160) + noise.gauss(0, 0.03)
        values = {"loss": loss, "accuracy": 0.97 - 0.8 * math.exp(-step / 120), "total_steps": 1000}
        done = {"step": step, "size": size, "epoch": None, "values": values}
        found.append({"event": "progress", "time": time, **done})
    return [f"{json.dumps(event)}\n" for event in found]


def take(page: Page, folder: Path, name: str) -> None:
    path = folder / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > LEAST


@pytest.mark.full
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("width", [1200, 320])
def test_every_page_has_a_picture(site: Site, tmp_path: Path, look: str, width: int) -> None:
    folder = Path(os.environ.get("EDT_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    job = populate(site)
    suffix = f"-{look}-{width}"
    with site.page("admin", viewport={"width": width, "height": 800}, **LOOKS[look]) as page:
        page.locator("#chart canvas").first.wait_for()
        take(page, folder, f"pool{suffix}")
        hues = "edtPictures.palette().hues.map(({ fill }) => fill)"
        colours = {*page.evaluate(hues), page.evaluate("getComputedStyle(document.body).backgroundColor")}
        assert len(colours) == 9, "pictures show nothing where all colours are alike"
        page.goto(f"/jobs/{job}?name=loss&name=accuracy&x=training")
        page.locator("#plots canvas").first.wait_for()
        take(page, folder, f"job{suffix}")
        for tab in ("size", "logs", "events", "results", "definition"):
            page.goto(f"/jobs/{job}?tab={tab}")
            take(page, folder, f"job-{tab}{suffix}")
        for path in ("jobs", "account", "users", f"jobs/{job}/stop", "nothing"):
            page.goto(f"/{path}")
            take(page, folder, f"{path.replace(f'/{job}/', '-')}{suffix}")
    assert [error for error in site.errors if "404" not in error] == []
