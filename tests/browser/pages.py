"""A service that a real browser, Debian's Chromium, shows the pages of."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

import npm
from databases import sqlite_at
from edt_launch.service.accounts import sessions
from web_server import WebServer
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
AXE_PATH = "/axe.js"
AXE_HEADERS = {"cache-control": "max-age=3600"}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@dataclass
class Site:
    """A service with three users, and a browser that looks at it. What its console says are errors."""

    world: World
    server: WebServer
    browser: Browser
    errors: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.url

    def start(self) -> None:
        """Start the service again."""
        self.world.context.stop.clear()
        self.server.start()

    def stop(self) -> None:
        """Stop the service; streams end."""
        self.world.context.stop.set()
        self.server.stop()

    @contextlib.contextmanager
    def page(self, name: str | None = None, path: str | None = None, **context: Any) -> Iterator[Page]:
        """A browser's window, in which the user of that name is logged on; it shows what is at `path`."""
        opened = self.browser.new_context(base_url=self.url, **context)
        try:
            if name is not None:
                token = sessions.begin(self.world.store.accounts, name, self.world.clock.now)
                cookie = {"name": sessions.cookie_name(self.world.context.url), "value": token}
                opened.add_cookies([{**cookie, "url": self.url}])  # type: ignore[typeddict-item]
            page = opened.new_page()
            page.set_default_timeout(1000 * PATIENCE)
            page.on("pageerror", lambda error: self.errors.append(str(error)))
            page.on("dialog", lambda shown: (self.errors.append(shown.message), shown.dismiss()))
            page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
            if path is not None:
                page.goto(path)
            yield page
        finally:
            opened.close()

    def check_access(self, page: Page, *rules: str) -> None:
        """Have axe look for what keeps people from using a page; by all rules, or those."""
        _axe()  # here, where it may skip the test
        if not page.evaluate("'axe' in window"):
            page.add_script_tag(url=AXE_PATH)
        options = {"values": rules, "type": "rule"} if rules else {"values": RULES, "type": "tag"}
        found = page.evaluate(
            "runOnly => axe.run({runOnly, resultTypes: ['violations'], elementRef: false})", options
        )
        told = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]]
        if told:
            raise AssertionError(f"{page.url}: {told}")


@cache
def _axe() -> bytes:
    try:
        return npm.file_of(*AXE)
    except npm.NotFetchedError as error:
        pytest.skip(f"axe-core cannot be had: {error}")


def with_axe(app: ASGIApp) -> ASGIApp:
    """The service, and axe below its address: the browser keeps what it has compiled for all pages."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_axe = scope.get("path") == AXE_PATH
        answer = Response(_axe(), 200, AXE_HEADERS, "text/javascript") if is_axe else app
        await answer(scope, receive, send)

    return serve


def by_keyboard(page: Page, role: str, name: str) -> None:
    """Press Enter on something that the keyboard can reach."""
    page.get_by_role(role, name=name, exact=True).focus()  # type: ignore[arg-type]
    page.keyboard.press("Enter")


def until_other_picture(picture: Locator, before: bytes) -> None:
    """Wait until something looks otherwise than before."""
    while picture.screenshot() == before:
        pass


def is_too_wide(page: Page) -> bool:
    """Whether a page scrolls sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.fixture(scope="session")
def chromium_of_all() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """A browser, and the event loop that goes on in this thread as long as it lives."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def chromium(chromium_of_all: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The browser; other files' tests run their own event loops."""
    browser, loop = chromium_of_all
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@contextlib.contextmanager
def site_at(folder: Path, browser: Browser) -> Iterator[Site]:
    """A site whose service keeps all in a folder."""
    store = sqlite_at(folder / "edt.db")
    world = World(folder / "home", store)
    server = WebServer(with_axe(world.app))
    server.start()
    site = Site(world, server, browser)
    try:
        yield site
    finally:
        site.stop()
        store.close()


@pytest.fixture
def site(tmp_path: Path, chromium: Browser) -> Iterator[Site]:
    with site_at(tmp_path, chromium) as one:
        yield one
