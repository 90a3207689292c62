from edt_launch.service.bus import Topic
from edt_launch.service.cluster.records import AllocationRecord, HostRecord
from world import World


def test_who_has_which_device(world: World) -> None:
    world.store.hosts.put(
        [HostRecord("node2", ("0", "1"), is_up=False), HostRecord("node3", ("0",), is_draining=True)]
    )
    job = world.submit(world.ann)["id"]
    world.store.jobs.record(
        {job: {"held": (("node1", ("0", "2")),), "leaving": (("node1", ("3",)),), "size": 2}}
    )
    shown = world.bob.get("/cluster").json()
    assert [shown[name] for name in ("devices", "used", "free", "down")] == [7, 3, 1, 2]
    assert shown["jobs"] == {"queued": 1}
    assert [host["state"] for host in shown["hosts"]] == ["up", "down", "draining"]
    held = [(device["job"], device["is_leaving"]) for device in shown["hosts"][0]["devices"]]
    assert held == [(job, False), (None, False), (job, False), (job, True)]
    hosts = world.bob.get("/hosts").json()["hosts"]
    assert [{name: host[name] for name in shown["hosts"][0]} for host in hosts] == shown["hosts"]


def test_a_host_is_drained_and_comes_back(world: World) -> None:
    assert world.admin.post("/hosts/node1/drain").json()["state"] == "draining"
    assert world.bus.version(Topic.HOSTS) == 1
    assert world.ann.get("/hosts").json()["hosts"][0]["reason"] == "drained by admin"
    assert world.admin.post("/hosts/node1/undrain").json()["state"] == "up"
    assert world.admin.post("/hosts/node9/drain").status_code == 404


def test_the_history_of_allocations(world: World) -> None:
    changes = [
        AllocationRecord("jaaaaaaaa", "ann", 1.0, 0, 2, (("node1", ("0", "1")),), "starts"),
        AllocationRecord("jaaaaaaab", "bob", 2.0, 0, 1, (("node1", ("2",)),), "starts"),
    ]
    world.store.history.add(changes)
    found = world.ann.get("/allocations").json()["allocations"]
    resizes = [(one["job"], one["from"], one["to"]) for one in found]
    assert resizes == [("jaaaaaaaa", 0, 2), ("jaaaaaaab", 0, 1)]
    assert found[0]["hosts"] == [{"host": "node1", "devices": ["0", "1"]}]
    assert len(world.ann.get("/allocations?since=1.5").json()["allocations"]) == 1
    assert len(world.ann.get("/allocations?job=jaaaaaaaa").json()["allocations"]) == 1
    assert world.ann.get("/allocations?limit=1").json()["allocations"] == found[1:]


def test_what_would_be_no_tree_is_refused(world: World) -> None:
    world.admin.put("/shares/lab", json={})
    world.admin.put("/shares/ann", json={"parent": "lab"})
    before = world.store.shares.all()
    changes: list[tuple[str, dict[str, object]]] = [
        ("lab", {"parent": "ann"}),
        ("lab", {"guarantee": 5, "limit": 4}),
        ("-", {"parent": "ann"}),
        ("a b", {"weight": 1}),
    ]
    for name, change in changes:
        assert world.admin.put(f"/shares/{name}", json=change).status_code == 422, (name, change)
    assert world.store.shares.all() == before
