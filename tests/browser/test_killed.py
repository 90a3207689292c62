"""A service that is killed, and its next one, in a real browser."""

import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from pages import PATIENCE
from serving import serving


@pytest.mark.full
def test_pages_heal_when_the_service_was_killed_and_started_again(tmp_path: Path, chromium: Browser) -> None:
    home = tmp_path / "home"
    with serving(home, "--slots", "2") as service:
        opened = chromium.new_context(base_url=service.url)
        page = opened.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto("/logon")
        page.get_by_label("Password or token").fill(service.token)
        page.get_by_role("button", name="Log on").click()
        page.get_by_text("live", exact=True).wait_for()
        page.evaluate("window.isSame = true")
        assert service.end(signal.SIGKILL) == -signal.SIGKILL
        page.get_by_text("no connection since").wait_for()
        assert page.get_by_role("heading", name="Pool").is_visible()
    port = urlsplit(service.url).port
    with serving(home, "--slots", "3", "--port", str(port)) as again:  # it has another device by now
        begin = time.monotonic()
        page.get_by_text("live", exact=True).wait_for()
        page.locator(".cell").nth(2).wait_for()
        print(f"{time.monotonic() - begin:.1f} s until the page shows the next service")
        assert again.url == service.url
        assert page.evaluate("window.isSame")
        opened.close()
