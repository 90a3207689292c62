"""What all pages have in common that ask before something is done."""

import html
import re
from pathlib import Path

import pytest

from browser import browser, shown_again
from edt_launch.service.experiments.pages import adding
from edt_launch.service.jobs.states import State, Wanted
from edt_launch.service.web import app
from lab import Lab
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


@pytest.mark.parametrize("path", ["/users/a%00b/remove", "/shares/%00/remove", "/jobs/%0a/stop"])
def test_what_cannot_be_a_name_is_not_there(world: World, path: str) -> None:
    client = browser(world, "admin")
    assert (client.get(path).status_code, client.post(path).status_code) == (404, 404)


def test_an_archive_is_sent_as_a_file(world: World) -> None:
    client = browser(world, "ann")
    assert client.post("/console/run", data={"command": "true", "code": "PK"}).status_code == 422
    assert world.store.jobs.page().jobs == []


def test_what_a_refused_form_offers_is_all_that_there_is_or_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(world)
    experiment = lab.experiment(lab.definition()["id"])["id"]
    monkeypatch.setattr(adding, "MAX_DEFINITIONS", 1)
    client, address = browser(world, "ann"), f"/experiments/{experiment}/add?tab=existing"
    assert "(the newest" not in client.get(address).text
    lab.definition(name="other")
    assert "(the newest 1)" in client.get(address).text
    shown_again(client.post(address, data={"definition": "daaaaaaaa", "max": "2"}), 422, "(the newest 1)")


def test_a_form_says_while_it_is_filled_in_what_starting_would_change(world: World) -> None:
    lab = Lab(world)
    experiment = lab.experiment()["id"]
    form = {
        "name": "net",
        "framework": "Horovod",
        "code": "net.zip",
        "devices": "1",
        "distribution": "Elastic",
        "max": "4",
        "min": "",
    }
    answer = browser(world, "ann").post(f"/experiments/{experiment}/preview", data=form)
    assert "net starts at once with 4." in answer.text
