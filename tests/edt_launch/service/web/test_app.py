"""What every page has in common: headers, refusals, files."""

import re
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from browser import browser
from edt_launch.service.db.store import Store
from edt_launch.service.web import app, templating
from edt_launch.service.web.app import POLICY
from world import World

TEMPLATES = sorted(file for folder in templating.TEMPLATES for file in folder.rglob("*.html"))


@pytest.mark.parametrize(
    "path", ["/", "/logon", "/account", "/static/app.css", "/static/nothing", "/favicon.ico"]
)
def test_every_answer_says_what_its_page_may_do(world: World, path: str) -> None:
    headers = browser(world).get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_every_page_is_served() -> None:
    modules = Path(app.__file__).parents[1].rglob("pages/*.py")
    served = {Path(page.__file__) for page in app.PAGES}
    assert {one for one in modules if "\nrouter = " in one.read_text()} == served


def test_files_are_kept_for_a_year_under_their_digest(world: World) -> None:
    address = templating.static("app.css")
    answer = browser(world).get(address)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"


def test_files_outside_are_not_served(world: World) -> None:
    for path in ("/static/%2e%2e/app.py", "/static//etc/passwd", "/static/..%2fapp.py"):
        assert browser(world).get(path).status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}])
def test_other_sites_pages_change_nothing(world: World, headers: dict[str, str]) -> None:
    client = browser(world, "ann")
    del client.headers["sec-fetch-site"]
    for path in ("/logoff", "/logon", "/account/end-others"):
        answer = client.post(path, headers=headers)
        assert answer.status_code == 403
        assert "does not come from a page of this service" in answer.text
    foreign = client.post("/logoff", headers={"Origin": "http://evil.test", **headers})
    assert foreign.status_code == 403
    assert client.get("/account").status_code == 200


def test_a_session_reads_the_rest_interface_and_changes_nothing_there(world: World) -> None:
    client = browser(world, "ann")
    assert client.get("/api/v1/").json()["user"] == "ann"
    assert client.post("/api/v1/tokens", json={}).status_code == 401
    client.post("/logoff")
    assert client.get("/api/v1/").status_code == 401


def test_while_the_database_is_away_the_page_tries_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser(world, "ann")

    def away(*_: object) -> None:
        raise OperationalError("", {}, Exception("gone"))

    monkeypatch.setattr(world.store.accounts, "bearer", away)
    answer = client.get("/account")
    assert answer.status_code == 503
    assert 'http-equiv="refresh"' in answer.text


def test_fragments_of_pages_lead_to_logging_on(world: World) -> None:
    answer = browser(world).get("/account", headers={"HX-Request": "true"})
    assert answer.headers["hx-redirect"] == "/logon?next=/account"
    inside = browser(world, "ann").get("/account", headers={"HX-Request": "true"})
    assert "<html" not in inside.text
    assert "<h1>ann" in inside.text


@pytest.mark.parametrize("path", ["/nope", "/Pool", "/jobs/", "/platform"])
def test_a_browser_is_told_as_a_page_that_there_is_nothing(world: World, path: str) -> None:
    answer = browser(world, "ann").get(path, headers={"Accept": "text/html,*/*"})
    assert (answer.status_code, "there is nothing at" in answer.text) == (404, True)
    assert answer.headers["content-type"].startswith("text/html")
    asked = world.ann.get("/nope", headers={"Accept": "text/html"})
    assert asked.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_need_no_more_than_the_policy_allows(template: Path) -> None:
    text = template.read_text()
    assert "|safe" not in text.replace(" ", "")
    assert not re.search(
        r"""\s(style|on\w+|hx-on[\w:-]*|hx-vals|hx-headers)\s*=|js:|javascript:|<style|<script>""", text
    )
    assert not re.search(r"""hx-trigger="[^"]*\[""", text)


def test_a_banner_is_on_every_page(tmp_path: Path, store: Store) -> None:
    world = World(tmp_path / "with", store, banner="Down <b>on Friday</b> from 18:00")
    ann = browser(world, "ann")
    for page in (browser(world).get("/logon"), ann.get("/pool"), ann.get("/jobs/jbbbbbbbb")):
        assert "Down &lt;b&gt;on Friday&lt;/b&gt; from 18:00" in page.text
