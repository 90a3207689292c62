from browser import OWN, browser
from world import World


def noted(world: World) -> list[tuple[str, str, str]]:
    return [(one.user, one.method, one.path) for one in world.store.audit.newest(100)]


def test_what_is_changed_is_noted_with_who_did_it(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.admin.patch(f"/jobs/{job}", json={"priority": 3})
    browser(world, "ann").post(f"/jobs/{job}/pause")
    browser(world, "ann").post("/selected", data={"action": "stop", "job": [job]})
    assert noted(world) == [
        ("ann", "POST", f"/selected stop {job}"),
        ("ann", "POST", f"/jobs/{job}/pause"),
        ("admin", "PATCH", f"/api/v1/jobs/{job}"),
        ("ann", "POST", f"/api/v1/jobs {job}"),
    ]


def test_what_changes_nothing_is_not(world: World) -> None:
    job = world.submit(world.ann)["id"]
    before = noted(world)
    world.ann.get(f"/jobs/{job}")
    world.ann.post(f"/jobs/{job}/stop?dry_run=1")
    browser(world, "ann").post("/console/run/preview", data={"name": "a", "min": "1", "max": "1"})
    browser(world, "admin").post("/new-share", data={"name": "lab", "foresee": "1"})
    world.bob.post(f"/jobs/{job}/stop")
    world.ann.patch(f"/jobs/{job}", json={"min": -1})
    world.anybody.post("/api/v1/jobs")
    client = browser(world, "ann")
    client.post("/account/theme", data={"theme": "dark"})
    client.post("/logoff", headers=OWN)
    assert noted(world) == before


def test_administrators_read_it(world: World) -> None:
    job = world.submit(world.ann)["id"]
    for _ in range(3):
        world.ann.post(f"/jobs/{job}/pause")
    changes = world.admin.get("/audit").json()["changes"]
    assert len(changes) == 4
    page = world.admin.get(f"/audit?limit=2&before={changes[1]['number']}").json()["changes"]
    assert page == changes[2:]
    assert world.admin.get("/audit?user=bob").json() == {"changes": []}
    assert world.bob.get("/audit").status_code == 403
    shown = browser(world, "admin").get("/users/changes").text
    assert f"POST <bdi>/api/v1/jobs/{job}/pause</bdi>" in shown
    assert browser(world, "bob").get("/users/changes").status_code == 403
