"""What all pages have in common that ask before something is done."""

import html
import re
from pathlib import Path

import pytest

from browser import browser
from edt_launch.service.jobs.states import State, Wanted
from edt_launch.service.web import app
from world import World


def test_what_is_only_previewed_changes_nothing_and_is_not_audited(world: World) -> None:
    job = world.submit(world.ann, max=2)["id"]
    before = (world.store.jobs.get(job), world.store.audit.newest(1))
    client = browser(world, "ann")
    form = {"min": "1", "max": "3", "command": "python train.py", "foresee": "1"}
    for action, told in {"set": "goes from 2 to 3", "clone": "It starts at once with"}.items():
        assert told in client.post(f"/jobs/{job}/{action}", data=form).text
    assert (world.store.jobs.get(job), world.store.audit.newest(1)) == before


def test_what_changes_something_is_an_action() -> None:
    """But for what concerns the browser alone, and for what a form says while it is filled in."""
    pages = "".join(Path(page.__file__).read_text() for page in app.PAGES)
    others = set(re.findall(r'@router\.(?:delete|patch|post|put)\("([^"]+)"', pages))
    assert {path for path in others if not path.endswith("/preview")} == {
        "/account/theme",
        "/logoff",
        "/logon",
    }


@pytest.mark.parametrize(
    "path", ["/pool/hosts/node1/drain", "/jobs/{job}/pause", "/selected?action=pause&job={job}"]
)
def test_what_can_be_undone_leads_to_what_undoes_it(world: World, path: str) -> None:
    job = world.submit(world.ann)["id"]
    world.go(job, State.STARTING, State.RUNNING)

    def present() -> tuple[str, Wanted]:
        return world.store.hosts.all()[0].state, world.store.jobs.get(job).wanted

    client, before, action = browser(world, "admin"), present(), path.format(job=job)
    found = re.search('data-undo="([^"]+)"', client.get(action).text)
    assert found is not None
    assert client.post(action).status_code == 303
    assert present() != before
    assert client.post(html.unescape(found[1])).status_code == 303
    assert present() == before
