"""Two people share four slots, from an empty service to the downloaded model, in the browser alone.

It is the guide docs/tutorials/two-people.md, whose pictures it takes: `EDT_PICTURES=FOLDER` keeps them.
"""

import contextlib
import io
import os
import re
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

from digits_as_mnist import write_digits
from edt_launch.service.app.application import create_app
from edt_launch.service.app.context import Context
from edt_launch.service.app.first_start import ensure_administrator, make_home
from edt_launch.service.jobs.states import State
from pages import PATIENCE
from pool_harness import Pool
from web_server import WebServer

MNIST = Path(__file__).parents[2] / "examples" / "mnist.py"
LONG = "python mnist.py --epochs 1000 --batch 64"
SHORT = "python mnist.py --epochs 6 --batch 64"
OTHER = "python mnist.py --epochs 6 --batch 64 --lr 0.1"


@dataclass
class Story:
    """An empty service with four slots, and the browsers that look at it."""

    pool: Pool
    browser: Browser
    url: str
    token: str
    pictures: Path
    done: Path  # ends the gated program
    errors: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def person(self, token: str) -> Iterator[Page]:
        opened = self.browser.new_context(base_url=self.url, viewport={"width": 1000, "height": 640})
        try:
            page = opened.new_page()
            page.set_default_timeout(3000 * PATIENCE)
            page.on("pageerror", lambda error: self.errors.append(str(error)))
            page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
            page.goto("/logon")
            page.get_by_label("Password or token").fill(token)
            page.get_by_role("button", name="Log on").click()
            page.wait_for_url("**/pool")
            yield page
        finally:
            opened.close()

    def take(self, page: Page, name: str) -> None:
        path = self.pictures / f"two-people-{name}.png"
        page.screenshot(path=path)
        assert path.stat().st_size > 8_000  # else it shows nothing

    def new_job(self) -> str:
        """The id of the job that was started last."""
        known = set(self.pool.ids)
        (job,) = [row.id for row in self.pool.rows() if row.id not in known]
        self.pool.ids.append(job)
        return job


@pytest.fixture
def story(tmp_path: Path, chromium: Browser) -> Iterator[Story]:
    pool = Pool(tmp_path / "pool")
    make_home(pool.settings.paths)
    write_digits(pool.settings.data_folder / "mnist")
    token = ensure_administrator(pool.store, pool.settings.paths, time.time())
    pictures = Path(os.environ.get("EDT_PICTURES", tmp_path))
    pictures.mkdir(parents=True, exist_ok=True)
    pool.start()
    context = Context(pool.settings, pool.store, pool.bus, time.time)
    server = WebServer(create_app(context))
    server.start()
    try:
        yield Story(pool, chromium, server.url, token, pictures, tmp_path / "done")
    finally:
        context.stop.set()
        server.stop()
        print(pool.report())
        pool.close()


def slots(page: Page, job: str) -> Locator:
    return page.locator(f".cell[href='/jobs/{job}']:not(.leaving)")


def gated(done: Path) -> str:
    """The program, which trains until a file is there: its sole worker looks for that before each epoch."""
    text = MNIST.read_text().replace("parse_args()\n", "parse_args()\nargs.epochs *= 1000\n")
    return text.replace("args.epochs:\n", f"args.epochs and not Path({str(done)!r}).exists():\n")


def archive(text: str) -> dict[str, object]:
    """The program as a zip that a browser sends."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("mnist.py", text)
    return {"name": "mnist.zip", "mimeType": "application/zip", "buffer": buffer.getvalue()}


def add_person(page: Page, name: str) -> str:
    """The administrator adds a user; their token."""
    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text(f"The token of {name}").wait_for()
    return page.locator("#fresh").inner_text()


def build(story: Story, page: Page, owner: str, name: str, command: str, preview: str, text: str) -> None:
    """A project, an experiment and a training definition, up to the button that runs them."""
    page.get_by_role("link", name="Experiments", exact=True).click()
    page.get_by_role("link", name="New project").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(f"{owner}'s digits")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="New experiment").click()
    page.get_by_label("Name").fill("first")
    page.get_by_label("Data folder").fill("mnist")
    story.take(page, f"experiment-{owner}")
    page.get_by_role("button", name="Add training definition").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Training source code").set_input_files([archive(text)])  # type: ignore[list-item]
    page.get_by_label("Framework").select_option("Horovod")
    page.get_by_label("Execution command").fill(command)
    page.get_by_label("Maximum GPUs").fill("4")
    page.get_by_label("Maximum GPUs").blur()
    page.get_by_text(preview).wait_for()
    page.get_by_text(f"{name} starts at once with").wait_for()  # the preview is replaced now and then
    page.get_by_role("button", name="Add", exact=True).scroll_into_view_if_needed()
    story.take(page, f"preview-{owner}")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Create and run").click()
    page.get_by_role("heading", name="first").wait_for()


def to_pool(page: Page) -> Page:
    other = page.context.new_page()
    other.goto("/pool")
    other.get_by_text("live", exact=True).wait_for()
    return other


def is_shown(story: Story, pool: Page, jobs: list[str], *sizes: int) -> None:
    """The pool has given the jobs these slots, and the page shows it."""
    wanted = {job: size for job, size in zip(jobs, sizes, strict=True) if size}
    story.pool.until(lambda: story.pool.sizes() == wanted)
    for job, size in zip(jobs, sizes, strict=True):
        expect(slots(pool, job)).to_have_count(size, timeout=1000 * PATIENCE)
    story.pool.until_training(*wanted)
    pool.locator(".cell.starting").first.wait_for(state="detached")


def change_priority(page: Page, job: str) -> None:
    page.goto(f"/jobs/{job}")
    page.get_by_role("link", name="Change").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Priority").fill("1")
    dialog.get_by_role("button", name="Change", exact=True).click()
    dialog.wait_for(state="hidden")


def stop(page: Page, job: str) -> None:
    page.goto(f"/jobs/{job}")
    page.get_by_role("link", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()


def run_with(page: Page, command: str) -> None:
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Use global execution command").check()
    page.get_by_label("Global execution command", exact=True).fill(command)
    page.get_by_role("button", name="Create and run").click()


def completed(page: Page, status: str) -> Locator:
    return page.get_by_role("region", name="Runs").get_by_role("row").filter(has_text=status)


def compare(story: Story, page: Page) -> None:
    page.get_by_role("link", name="Compare Runs").click()
    page.locator("#curves canvas").first.wait_for()
    differing = page.get_by_role("region", name="Differing parameters")
    assert differing.get_by_role("row").filter(has_text="--lr").get_by_role("cell", name="0.1").count() == 1
    story.take(page, "compare")


def download(story: Story, page: Page) -> Path:
    page.get_by_role("link", name="Training Runs").click()
    story.take(page, "runs")
    page.get_by_role("link", name=re.compile("^Results of")).first.click()
    page.locator("details[id^=folder]").evaluate_all("all => all.forEach(one => one.open = true)")
    page.get_by_role("link", name="mnist.pt").scroll_into_view_if_needed()
    story.take(page, "results")
    with page.expect_download() as found:
        page.get_by_role("link", name="mnist.pt").click()
    return Path(found.value.path())


@pytest.mark.full
@pytest.mark.timeout(900)
def test_from_an_empty_service_to_the_downloaded_model(story: Story) -> None:
    with story.person(story.token) as admin:
        tokens = [add_person(admin, name) for name in ("ann", "bob")]
    with story.person(tokens[0]) as ann, story.person(tokens[1]) as bob:
        build(story, ann, "ann", "net", LONG, "net starts at once with 4.", MNIST.read_text())
        first = story.new_job()
        pool = to_pool(ann)
        is_shown(story, pool, [first], 4)
        story.take(pool, "four")

        build(story, bob, "bob", "test", SHORT, "net of ann goes from 4 to 2.", gated(story.done))
        second = story.new_job()
        is_shown(story, pool, [first, second], 2, 2)
        story.take(pool, "two-and-two")

        change_priority(ann, first)
        is_shown(story, pool, [first, second], 3, 1)
        story.take(pool, "three-and-one")
        story.done.touch()
        completed(bob, "succeeded").wait_for()
        is_shown(story, pool, [first, second], 4, 0)
        story.take(pool, "four-again")

        stop(ann, first)
        ann.goto("/experiments")
        ann.get_by_role("link", name="first", exact=True).click()
        completed(ann, "stopped").wait_for()
        run_with(ann, OTHER)
        story.new_job()
        completed(ann, "succeeded").wait_for()
        compare(story, ann)
        model = torch.load(download(story, ann), weights_only=True)
        assert model["0.weight"].shape == (16, 1, 3, 3)
    jobs = [story.pool.job(job).state for job in story.pool.ids]
    assert jobs == [State.STOPPED, State.SUCCEEDED, State.SUCCEEDED]
    assert story.errors == []
