"""A browser without scripts: it keeps cookies, and says which page a form is on."""

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from world import World

OWN = {"Sec-Fetch-Site": "same-origin"}


def browser(world: World, name: str | None = None) -> TestClient:
    """One that nobody is logged on with, or the user of that name."""
    client = TestClient(world.app, base_url="http://edt.test", headers=OWN, follow_redirects=False)
    if name is not None:
        answer = client.post("/logon", data={"secret": world.tokens[name]})
        assert answer.status_code == 303, answer.text
    return client


def made(client: TestClient, path: str, **fields: str) -> str:
    """The token that is made by a form and then shown once on the page of that path's first part."""
    answer = client.post(path, data=fields)
    page = f"/{path.split('/')[1]}"
    assert (answer.status_code, answer.headers["location"]) == (303, page), answer.text
    shown, again = client.get(page).text, client.get(page).text
    found = re.search(r'<code id="fresh">(edt_[\w-]+)</code>', shown)
    assert found is not None, shown
    assert found[1] not in again
    return found[1]


def shown_again(answer: Any, status: int, *said: str) -> None:
    """The form is there again, with what was wrong above it."""
    text = answer.text
    assert (answer.status_code, 'role="alert"' in text, "<form" in text) == (status, True, True), text
    for one in said:
        assert one in text


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Pages see no difference between databases."""
    return f"sqlite:///{tmp_path}/edt.db"
