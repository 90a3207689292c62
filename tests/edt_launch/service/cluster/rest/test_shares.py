from edt_launch.service.bus import Topic
from edt_launch.service.cluster.records import ShareRecord
from world import World


def node(world: World, name: str) -> ShareRecord:
    (found,) = [node for node in world.store.shares.all() if node.name == name]
    return found


def test_a_change_of_what_was_seen_otherwise_is_refused(world: World) -> None:
    first = world.admin.put("/shares/lab", json={"weight": 2}).json()["version"]
    second = world.admin.put("/shares/lab", json={"weight": 3, "version": first}).json()["version"]
    assert second != first
    world.clock.now += 5
    answer = world.admin.put("/shares/lab", json={"weight": 4, "version": first})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "lab was changed by admin, 5s ago: that came first"
    assert node(world, "lab").weight == 3.0
    assert world.store.shares.put(ShareRecord("lab", weight=5.0), first) is False
    assert node(world, "lab").weight == 3.0
    assert world.admin.put("/shares/lab", json={"weight": 2}).json()["version"] == first


def test_a_node_is_removed_once_nothing_needs_it(world: World) -> None:
    world.admin.put("/shares/lab", json={"guarantee": 3, "lends": False})
    version = world.admin.put("/shares/ann", json={"parent": "lab"}).json()["version"]
    for client in (world.ann, world.bob):
        world.submit(client, max=4)
    refused = world.admin.delete("/shares/lab")
    assert (refused.status_code, refused.json()["detail"]) == (409, "lab has others below it: ann")
    refused = world.admin.delete("/shares/ann")
    assert (refused.status_code, "ann has jobs that have not ended: j" in refused.text) == (409, True)
    assert world.ann.delete("/shares/ann").status_code == 403
    world.admin.put("/shares/ann", json={"parent": ""})
    answer = world.admin.delete("/shares/lab?dry_run=1")
    changes = [(change["from"], change["to"]) for change in answer.json()["changes"]]
    assert sorted(changes) == [(0, 2), (1, 2)]  # what it kept is free
    assert node(world, "lab").guarantee == 3
    refused = world.admin.delete(f"/shares/lab?version={version}")
    assert (refused.status_code, "lab was changed" in refused.text) == (409, True)
    before = world.bus.version(Topic.DESIRED_STATE)
    assert world.admin.delete("/shares/lab").status_code == 204
    assert "lab" not in [node.name for node in world.store.shares.all()]
    assert world.bus.version(Topic.DESIRED_STATE) == before + 1
    assert world.admin.delete("/shares/lab").status_code == 404
    assert world.admin.delete("/shares/-").status_code == 422


def test_a_budget_is_set_and_what_is_used_of_it_is_shown(world: World) -> None:
    shown = world.admin.put("/shares/ann", json={"budget": 2.5}).json()
    assert (shown["budget"], shown["used"]) == (2.5, 0.0)
    world.store.shares.remember({"ann": {"service": 1.0, "entitlement": 1.0, "usage_at": 9.0, "used": 2.5}})
    assert world.admin.put("/shares/ann", json={"weight": 2}).json()["used"] == 2.5
    job = world.submit(world.ann)["id"]
    assert world.admin.put("/shares/ann", json={"budget": None}).json()["budget"] is None
    assert world.admin.put("/shares/ann", json={"budget": -1}).status_code == 422
    assert world.ann.get(f"/jobs/{job}").status_code == 200
