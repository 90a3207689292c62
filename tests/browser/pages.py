"""A service that a real browser, Debian's Chromium, shows the pages of."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.types import ASGIApp

import npm
from databases import sqlite_at
from world import World

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60.0
"""Seconds until a test gives up."""
AXE = ("axe-core", "4.14.1", "axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
}


@dataclass
class Site:
    """A service with three users, and browsers that look at it. What their consoles say are errors."""

    world: World
    server: "Server"
    url: str
    browser: Browser
    errors: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def page(self, name: str | None = None, **context: Any) -> Iterator[Page]:
        """A browser's window, in which the user of that name is logged on."""
        opened = self.browser.new_context(base_url=self.url, **context)
        try:
            page = opened.new_page()
            page.set_default_timeout(1000 * PATIENCE)
            page.on("pageerror", lambda error: self.errors.append(str(error)))
            page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
            if name is not None:
                page.goto("/logon")
                page.get_by_label("Password or token").fill(self.world.tokens[name])
                page.get_by_role("button", name="Log on").click()
                page.wait_for_url(lambda url: "/logon" not in url)
            yield page
        finally:
            opened.close()

    def check_access(self, page: Page) -> None:
        """Have axe look for what keeps people from using a page."""
        try:
            axe = npm.file_of(*AXE).decode()
        except npm.NotFetchedError as error:
            pytest.skip(f"axe-core cannot be had: {error}")
        page.evaluate(f"(() => {{ {axe}; window.axe = axe }})()")
        found = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
        told = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]]
        if told:
            raise AssertionError(f"{page.url}: {told}")


def is_too_wide(page: Page) -> bool:
    """Whether a page scrolls sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Server:
    """Serves pages at a port that stays the same when it is started again; `stop` ends streams."""

    def __init__(self, app: ASGIApp, stop: threading.Event) -> None:
        self._app = app
        self._stop = stop
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def start(self) -> None:
        self._stop.clear()
        config = uvicorn.Config(
            self._app, port=self.port, log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(target=server.run)
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.01)
        self.port = server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._stop.set()
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def site(tmp_path: Path, chromium: Browser) -> Iterator[Site]:
    store = sqlite_at(tmp_path / "edt.db")
    world = World(tmp_path / "home", store)
    server = Server(world.app, world.context.stop)
    server.start()
    try:
        yield Site(world, server, f"http://127.0.0.1:{server.port}", chromium)
    finally:
        server.stop()
        store.close()
