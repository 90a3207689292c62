import pytest

from edt_launch.service.bus import Topic
from edt_launch.service.jobs.states import State
from world import NOW, World, post_job


@pytest.fixture
def running(world: World) -> str:
    """A job of ann's that has all four devices."""
    job: str = world.submit(world.ann, min=1, max=4)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", ("0", "1", "2", "3")),)
    world.store.jobs.record({job: {"held": held, "size": 4, "target": 4, "running_since": NOW - 1e4}})
    return job


def changes_of(answer: object) -> set[tuple[str, int, int]]:
    return {(one["name"], one["from"], one["to"]) for one in answer.json()["changes"]}  # type: ignore[attr-defined]


def test_what_an_action_would_change_is_told_and_nothing_is_done(world: World, running: str) -> None:
    other = world.submit(world.bob, name="other", min=1, max=4)["id"]
    world.ann.patch(f"/jobs/{running}", json={"name": "mine"})
    before = world.store.jobs.live(), world.store.hosts.all()
    version = world.bus.version(*Topic)
    dry = {"params": {"dry_run": 1}}
    assert changes_of(world.ann.post(f"/jobs/{running}/stop", **dry)) == {("other", 2, 4)}
    assert changes_of(world.ann.post(f"/jobs/{running}/pause", **dry)) == {("other", 2, 4)}
    assert changes_of(world.ann.post(f"/jobs/{running}/resume", **dry)) == set()
    new = post_job(world.bob, query="?dry_run=1", name="new", max=4)
    assert changes_of(new) == {("other", 2, 1), ("new", 0, 1)}
    raised = world.ann.patch(f"/jobs/{running}", json={"min": 3}, **dry)
    assert changes_of(raised) == {("mine", 2, 3), ("other", 2, 1)}
    assert changes_of(world.admin.post("/hosts/node1/drain", **dry)) == {("mine", 2, 0), ("other", 2, 0)}
    world.store.jobs.record({running: {"can_save": False}})
    drained = world.admin.post("/hosts/node1/drain", **dry)
    assert changes_of(drained) == set()
    assert [text.split()[0] for text in drained.json()["staying"]] == [running]
    forced = world.admin.post("/hosts/node1/drain", params={"dry_run": 1, "force": 1})
    assert (changes_of(forced), forced.json()["staying"]) == ({("mine", 4, 0)}, [])
    world.store.jobs.record({running: {"can_save": True}})
    assert (world.store.jobs.live(), world.store.hosts.all()) == before
    assert world.bus.version(*Topic) == version
    for path in (f"/jobs/{other}/stop", f"/jobs/{other}/pause"):
        assert world.ann.post(path, **dry).status_code == 403
    assert world.ann.post("/hosts/node1/drain", **dry).status_code == 403
    assert world.admin.post("/hosts/node9/drain", **dry).status_code == 404
