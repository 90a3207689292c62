import pytest

from browser import browser, shown_again
from edt_launch.service.jobs.states import State
from world import World

FORM = {"parent": "", "weight": "1", "guarantee": "0", "limit": "", "lends": "yes", "policy": "fair"}

PREVIEW = {"foresee": "1"}


def version(world: World, name: str) -> str:
    return next(node for node in world.ann.get("/shares").json()["shares"] if node["name"] == name)["version"]


@pytest.fixture
def two_jobs(world: World) -> list[str]:
    """Of ann and bob, with two devices each, who could use four."""
    ids = []
    for client, name, devices in ((world.ann, "first", ("0", "1")), (world.bob, "second", ("2", "3"))):
        job = world.submit(client, name=name, max=4)["id"]
        world.go(job, State.STARTING, State.RUNNING)
        record = {"size": 2, "target": 2, "held": (("node1", devices),), "share": 2.0}
        world.store.jobs.record({job: record})
        ids.append(job)
    return ids


def test_everybody_sees_the_tree_and_administrators_change_it(world: World, two_jobs: list[str]) -> None:
    world.admin.put("/shares/lab", json={"guarantee": 3, "limit": 4, "policy": "fifo"})
    world.admin.put("/shares/ann", json={"parent": "lab"})
    page = browser(world, "ann").get("/shares").text
    assert "ann<span" in page
    assert ", below lab" in page
    assert "<td>fifo</td>" in page
    assert "Edit" not in page
    lab = next(node for node in world.ann.get("/shares").json()["shares"] if node["name"] == "lab")
    # one device of its three is used by bob: no other is free
    assert [lab[name] for name in ("size", "asks", "entitled", "lent")] == [2, 4, 2.0, 1]
    assert "/shares/lab" in browser(world, "admin").get("/shares").text
    for path in ("/shares/lab", "/new-share"):
        assert browser(world, "ann").get(path).status_code == 403
        assert browser(world, "ann").post(path, data=FORM | PREVIEW).status_code == 403


def test_a_share_is_added_after_a_look_at_what_that_does(world: World, two_jobs: list[str]) -> None:
    admin, path = browser(world, "admin"), "/new-share"
    assert ">Save</button>" not in admin.get(path).text
    data = FORM | {"name": "lab", "weight": "2", "version": "new"}
    mistaken, said = data | {"name": "ann"}, "there is a share of &#39;ann&#39; already"
    for sent in (mistaken | PREVIEW, mistaken):
        shown_again(admin.post(path, data=sent), 422, said, 'name="weight" value="2"')
    asked = admin.post(path, data=data | PREVIEW).text
    told = ("Save <bdi>the share of lab</bdi>?", "Weight: 1 → 2.", ">Save</button>")
    assert [one in asked for one in told] == [True] * 3
    assert "lab" not in {node.name for node in world.store.shares.all()}
    assert admin.post(path, data=data).headers["location"] == "/shares"
    assert {node.name: node.weight for node in world.store.shares.all()}["lab"] == 2.0
    assert world.store.audit.newest(1)[0].path == "/new-share lab"
    assert admin.post("/shares/labs", data=data).status_code == 404
