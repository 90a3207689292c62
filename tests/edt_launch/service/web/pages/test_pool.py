from browser import browser
from edt_launch.service.database.records import AllocationRecord
from edt_launch.service.states import State
from world import NOW, World


def test_it_is_the_first_page_and_shows_everybodys_devices(world: World) -> None:
    job = world.submit(world.ann, name="<b>digits", max=2)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", ("0", "1")),)
    world.store.jobs.record({job: {"size": 2, "held": held}})
    world.store.history.add([AllocationRecord(job, "ann", NOW - 60, 0, 2, held, "")])
    client = browser(world, "bob")
    assert client.get("/").headers["location"] == "/pool"
    page = client.get("/pool").text
    assert "2 of 4" in page
    assert page.count(f'class="cell used hue-1" href="/jobs/{job}"') == 2
    assert page.count('class="cell free"') == 2
    assert page.count("<bdi>&lt;b&gt;digits</bdi>") == 2
    assert "1 min ago" in page
    assert "<b>digits" not in page


def test_windows(world: World) -> None:
    client = browser(world, "ann")
    assert "in the last 7 d" in client.get("/pool?window=7+d").text
    answer = client.get("/pool?window=9+y")
    assert answer.status_code == 422
    assert "choose one of 15 min" in answer.text


def test_without_hosts_it_says_what_to_do(world: World) -> None:
    world.store.hosts.all = list  # type: ignore[method-assign]
    assert "--slots" in browser(world, "ann").get("/pool").text
