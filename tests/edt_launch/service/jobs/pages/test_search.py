from browser import browser
from world import World


def test_one_job_is_gone_to_and_several_are_listed(world: World) -> None:
    first = world.submit(world.ann, name="digits one")["id"]
    world.submit(world.bob, name="digits two")
    client = browser(world, "ann")
    assert client.get("/search?text=+one+").headers["location"] == f"/jobs/{first}"
    assert client.get(f"/search?text={first}").headers["location"] == f"/jobs/{first}"
    assert client.get("/search?text=digits").headers["location"] == "/jobs?state=all&text=digits"
