"""Two users share four slots, and everybody sees it: real jobs, a real service, a real browser."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from edt_launch.service import tokens
from edt_launch.service.api.app import create_app
from edt_launch.service.context import Context
from edt_launch.service.database.account_records import UserRecord
from edt_launch.service.database.records import ShareRecord
from edt_launch.service.first_start import make_home
from edt_launch.service.states import State
from pages import PATIENCE, Server
from pool_harness import Pool


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    one = Pool(tmp_path / "pool")
    make_home(one.settings.paths)
    one.start()
    yield one
    print(one.report())
    one.close()


def seen(page: Page, *jobs: str) -> tuple[int, ...]:
    """How many devices the pool's page shows each job to have."""
    return tuple(page.locator(f".cell[href='/jobs/{job}']:not(.leaving)").count() for job in jobs)


def until(condition: Callable[[], bool]) -> float:
    begin = time.monotonic()
    while not condition():
        time.sleep(0.02)
    return time.monotonic() - begin


@pytest.mark.full
@pytest.mark.timeout(900)
def test_two_users_and_four_slots_in_the_browser(pool: Pool, chromium: Browser) -> None:
    store = pool.store
    for name in ("ann", "bob"):
        store.accounts.add_user(UserRecord(name))
        store.shares.add_missing(ShareRecord(name))
    token, _ = tokens.issue(store.accounts, "ann", "test", time.time())
    context = Context(pool.settings, store, pool.bus, time.time)
    server = Server(create_app(context), context.stop)
    server.start()
    opened = chromium.new_context(base_url=f"http://127.0.0.1:{server.port}")
    errors: list[str] = []
    try:
        page = opened.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and errors.append(said.text))
        page.goto("/logon")
        page.get_by_label("Password or token").fill(token)
        page.get_by_role("button", name="Log on").click()
        page.wait_for_url("**/pool")
        took = []
        first = pool.submit("ann", 1, 4, "--steps", 100_000)
        pool.until_sizes(4)
        took.append(until(lambda: seen(page, first) == (4,)))
        pool.until_training(first)

        second = pool.submit("bob", 1, 4, "--steps", 100_000)
        pool.until_sizes(2, 2)
        took.append(until(lambda: seen(page, first, second) == (2, 2)))
        pool.until_training(first, second)

        other = opened.new_page()
        other.goto(f"/jobs/{first}")
        other.get_by_role("link", name="Change").click()
        other.get_by_label("Priority").fill("1")
        other.get_by_role("dialog").get_by_role("button", name="Change", exact=True).click()
        pool.until_sizes(3, 1)
        took.append(until(lambda: seen(page, first, second) == (3, 1)))
        pool.until_training(first, second)

        (pool.out / f"finish.{second}").touch()
        pool.until_sizes(4, 0)
        took.append(until(lambda: seen(page, first, second) == (4, 0)))
        page.locator("#chart[data-bars]").wait_for()
        (pool.out / f"finish.{first}").touch()
        for job in (first, second):
            pool.until(lambda job=job: pool.job(job).state is State.SUCCEEDED)
        print(f"seen after {', '.join(f'{seconds:.2f}' for seconds in took)} s")
    finally:
        opened.close()
        server.stop()
    assert errors == []
