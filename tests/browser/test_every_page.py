"""Every page, on a narrow screen: everybody can use it, and it can be looked at.

`EDT_PICTURES=FOLDER` keeps its pictures: README has some of them.
"""

import json
import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from sqlalchemy.exc import OperationalError

from edt_launch.service.bus import Topic
from edt_launch.service.cluster.records import AllocationRecord, HostRecord
from edt_launch.service.db.types import Held
from edt_launch.service.jobs.states import State
from lab import Lab
from pages import Site, is_too_wide, site_at
from some_search import ID, a_search
from world import NOW, tar

NARROW = {"width": 320, "height": 640}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
}
LEAST = 8_000
"""Bytes of a picture that shows something."""

HOSTILE = '<img src=x onerror="alert(1)">\u202e'
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


@dataclass
class Shown:
    """A service with a past, and the paths of its pages by the name of who looks at them.

    Attributes:
        others: the paths of ann's that show the same forms and tables as others, with other content.
    """

    site: Site
    job: str
    paths: dict[str | None, list[str]]
    others: list[str]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Shown]:
    with site_at(tmp_path_factory.mktemp("shown"), chromium) as site:
        job = populate(site)
        site.world.submit(site.world.bob, name=HOSTILE)
        a_search(site, 12)
        experiments, others = of_experiments(site)
        paths: dict[str | None, list[str]] = {
            None: ["/logon"],
            "ann": [*of_ann(job), *experiments, *of_data(site)],
            "admin": of_administrators(site),
        }
        yield Shown(site, job, paths, [*others_of_ann(job), *others])


def of_ann(job: str) -> list[str]:
    tabs = ("monitor", "size", "events", "results", "definition", "logs")
    return [
        *("/account", "/account/password", "/nothing", "/pool", "/jobs", f"/jobs/{job}/set"),
        *(f"/jobs/{job}?tab={tab}" for tab in tabs),
        *("/experiments", "/experiments/new-search", f"/experiments/{ID}", f"/experiments/{ID}?tab=input"),
    ]


def others_of_ann(job: str) -> list[str]:
    return [
        *("/jobs/jbbbbbbbb", "/jobs?after=x", "/jobs?text=nothing", f"/jobs/{job}/stop"),
        *(f"/jobs/{job}?tab=logs&{query}" for query in ("text=epoch", "at=0")),
        *(f"/experiments/{ID}{rest}" for rest in ("?tab=best", "?tab=compare", "/stop")),
        *("/data/folder?path=", "/data/folder?path=users/ann/digits/train"),
    ]


def of_experiments(site: Site) -> tuple[list[str], list[str]]:
    """The paths of experiments' pages, and of those that have other content."""
    lab = Lab(site.world)
    definition = lab.definition(name=HOSTILE)["id"]
    experiment = lab.experiment(definition, description=HOSTILE)["id"]
    empty = lab.experiment(name="empty")["id"]
    for rate in ("0.1", HOSTILE):
        (run,) = lab.run(experiment, environment={"RATE": rate})
        lab.finish(run["job"], loss=0.5, accuracy=0.75)
    lab.run(experiment)
    project = f"projects/{lab.project}"
    paths = [
        *("/new-project", f"/{project}", f"/{project}/members", f"/{project}/delete"),
        *(
            f"/definitions/{definition}/edit",
            f"/{experiment}/run",
            f"/{experiment}/edit",
            f"/{experiment}/add",
        ),
        *(f"/{experiment}?tab={tab}" for tab in ("runs", "compare", "overview")),
        f"/runs/{run['id']}/save",
    ]
    others = [
        *(f"/{project}/edit", f"/new?project={lab.project}", f"/definitions/{definition}/delete"),
        *(f"/{empty}", f"/{empty}?tab=compare", f"/{empty}/edit"),
        *(f"/{experiment}/delete", f"/{experiment}/add?tab=existing", f"/runs/{run['id']}/again"),
    ]
    return [f"/experiments{path}" for path in paths], [f"/experiments{path}" for path in others]


def of_data(site: Site) -> list[str]:
    site.world.ann.put("/datasets/ann/digits", content=tar({"train/a.csv": b"1,2"}))
    (site.world.settings.data_folder / "users/ann/digits" / HOSTILE.replace("/", "")).write_text("x")
    return ["/data", "/data/upload", "/data/folder?path=users/ann/digits", "/data/sets/ann/digits/delete"]


def of_administrators(site: Site) -> list[str]:
    site.world.admin.put("/shares/lab", json={"guarantee": 2})
    site.world.admin.put("/shares/ann", json={"parent": "lab"})
    site.world.store.hosts.put([HostRecord("node3", ("cpu0",), is_draining=True, reason=HOSTILE)])
    site.world.bus.notify(Topic.HOSTS)
    console = ("groups", "hosts", "run")
    return [
        *("/users", "/users/bob/password", "/users/bob/remove", "/users/changes"),
        *(f"/console/{path}" for path in console),
        *("/shares", "/shares/lab", "/new-share"),
    ]


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
        before, held = 0, Held()
        for ago, size in sizes:
            held = devices(0 if name == "digits" else 8 - size if name == "speech" else 6, size)
            lost = int(ago in LOSSES)
            changes.append(
                AllocationRecord(job, OWNERS[name], NOW - ago, before, size, held, "its share", lost=lost)
            )
            before = size
        store.jobs.record({job: {"size": before, "target": before, "held": held, "share": 4.0, "step": 740}})
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
    folder.launcher_log.write_text("".join(["[0] warmed up\n", *printed]))
    (folder.output.model / "train").mkdir(parents=True, exist_ok=True)
    (folder.output.model / "train" / "a model.pt").write_bytes(b"0" * 250_000)
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


def visit(page: Page, path: str) -> None:
    """Open a page with all that it can show, and its pictures drawn."""
    page.goto(path)
    if path == "/pool":
        page.locator("#chart canvas").first.wait_for()
        page.get_by_text("As a table").click()
    elif path == f"/experiments/{ID}":
        page.locator("#parallel[data-trials]").wait_for()
        page.get_by_text("Axes", exact=True).click()
        page.get_by_label("Show the curve of trial 0").check()
        page.locator("#curves canvas").wait_for()


def check_all(site: Site, name: str | None, paths: list[str]) -> None:
    with site.page(name, viewport=NARROW) as page:
        for path in paths:
            visit(page, path)
            site.check_access(page)
            assert not is_too_wide(page), path
    assert [error for error in site.errors if "404" not in error and "422" not in error] == []


@pytest.mark.parametrize("name", [None, "ann", "admin"])
def test_everybody_can_use_the_pages(shown: Shown, name: str | None) -> None:
    check_all(shown.site, name, shown.paths[name])


@pytest.mark.full
def test_everybody_can_use_them_with_other_content(shown: Shown) -> None:
    check_all(shown.site, "ann", shown.others)


@pytest.mark.full
@pytest.mark.parametrize("name", [None, "ann", "admin"])
@pytest.mark.parametrize("look", ["dark", "forced"])
def test_other_colours_have_as_much_contrast(shown: Shown, name: str | None, look: str) -> None:
    with shown.site.page(name, viewport=NARROW, **LOOKS[look]) as page:
        for path in shown.paths[name]:
            visit(page, path)
            shown.site.check_access(page, "color-contrast")


def test_everybody_can_use_pages_that_say_what_is_wrong(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = shown.site
    with site.page("bob", viewport=NARROW) as page:
        for path, text in {
            f"/jobs/{shown.job}?tab=logs": "is for ann and administrators",
            f"/jobs/{shown.job}": "are for ann and administrators",
            "/users": "bob is no administrator",
        }.items():
            page.goto(path)
            page.get_by_text(text).first.wait_for()
            site.check_access(page)
            assert not is_too_wide(page), path

        def away(*_: object) -> None:
            raise OperationalError("", {}, Exception("gone"))

        monkeypatch.setattr(site.world.store.accounts, "bearer", away)
        page.goto("/jobs")
        page.get_by_text("This page retries every 5 seconds").wait_for()
        site.check_access(page)
        monkeypatch.undo()
        page.get_by_role("link", name="digits").first.wait_for()


@pytest.mark.full
@pytest.mark.parametrize("look", LOOKS)
def test_every_page_has_a_picture(shown: Shown, tmp_path: Path, look: str) -> None:
    folder = Path(os.environ.get("EDT_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    job = shown.job

    def take(name: str) -> None:
        for width in (320, 1200):
            page.set_viewport_size({"width": width, "height": 800})
            path = folder / f"{name}-{look}-{width}.png"
            page.screenshot(path=path, full_page=True)
            assert path.stat().st_size > LEAST

    with shown.site.page("admin", "/pool", **LOOKS[look]) as page:
        page.locator("#chart canvas").first.wait_for()
        take("pool")
        hues = "edtPictures.palette().hues.map(({ fill }) => fill)"
        colours = {*page.evaluate(hues), page.evaluate("getComputedStyle(document.body).backgroundColor")}
        assert len(colours) == 9, "pictures show nothing where all colours are alike"
        page.goto(f"/jobs/{job}?name=loss&name=accuracy&x=training")
        page.locator("#plots canvas").first.wait_for()
        take("job")
        for tab in ("size", "logs", "events", "results", "definition"):
            page.goto(f"/jobs/{job}?tab={tab}")
            take(f"job-{tab}")
        for path in ("jobs", "account", "users", f"jobs/{job}/stop", "nothing"):
            page.goto(f"/{path}")
            take(path.replace(f"/{job}/", "-"))
