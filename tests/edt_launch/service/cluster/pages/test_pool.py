from browser import browser
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.jobs.states import State
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
    assert page.count(f'class="cell used hue-0" href="/jobs/{job}"') == 2
    assert page.count('class="cell free"') == 2
    assert page.count("<bdi>&lt;b&gt;digits</bdi>") == 4
    assert "1m ago" in page
    assert "<b>digits" not in page


def test_a_fragment_is_made_once_for_each_state_of_the_service(world: World) -> None:
    world.submit(world.ann, name="digits")
    client = browser(world, "ann")
    first = client.get("/pool", headers={"HX-Request": "true"})
    assert first.headers["content-encoding"] == "gzip"
    assert "<html" not in first.text
    assert first.text in client.get("/pool").text
    made = world.store.jobs.holders
    world.store.jobs.holders = None  # type: ignore[assignment]
    other = browser(world, "bob").get("/pool", headers={"HX-Request": "true", "Accept-Encoding": "identity"})
    assert other.text == first.text
    assert "content-encoding" not in other.headers
    world.store.jobs.holders = made  # type: ignore[method-assign]
    world.submit(world.ann, name="another")
    assert client.get("/pool", headers={"HX-Request": "true"}).text != first.text


def test_administrators_drain_hosts(world: World) -> None:
    job = world.submit(world.ann, name="digits", max=2)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    world.store.jobs.record({job: {"size": 1, "held": (("node1", ("0",)),)}})
    admin, ann = browser(world, "admin"), browser(world, "ann")
    for headers in ({}, {"HX-Request": "true"}):
        assert "/pool/hosts/node1/drain" in admin.get("/pool", headers=headers).text
        assert "/pool/hosts/node1/drain" not in ann.get("/pool", headers=headers).text
    asked = admin.get("/pool/hosts/node1/drain").text
    assert "digits of ann goes from 2 to 0." in asked
    assert 'data-undo="/pool/hosts/node1/undrain?back=/pool"' in asked
    assert ann.get("/pool/hosts/node1/drain").status_code == 403
    assert ann.post("/pool/hosts/node1/drain").status_code == 403
    assert world.store.hosts.all()[0].state == "up"
    assert admin.post("/pool/hosts/node1/drain").headers["location"] == "/pool"
    assert world.store.hosts.all()[0].state == "draining"
    assert "drained by admin" in ann.get("/pool").text
    assert "digits of ann goes from 0 to 2." in admin.get("/pool/hosts/node1/undrain").text
    admin.post("/pool/hosts/node1/undrain")
    assert world.store.hosts.all()[0].state == "up"
    assert admin.get("/pool/hosts/node9/drain").status_code == 404


def test_owners_their_hours_and_the_latest_changes(world: World) -> None:
    world.clock.now = now = 20 * 86400.0 + 7200
    job = world.submit(world.ann, name="<b>digits", max=4)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", ("0", "1")),)
    world.store.jobs.record({job: {"size": 2, "held": held, "share": 2.5}})
    changes = [
        AllocationRecord(job, "ann", now - 10800, 0, 1, (("node1", ("0",)),), "starts"),
        AllocationRecord(job, "ann", now - 1800, 1, 2, held, "there <is> room"),
    ]
    world.store.history.add(changes)
    client = browser(world, "bob")
    page = client.get("/pool").text
    assert "<td>2</td><td>2.5</td><td>1.5</td>" in page
    assert "<td>1→2</td><td>there &lt;is&gt; room</td>" in page
    latest, _, had = page.partition('id="had"')
    assert ("starts" in latest, "<td>starts</td>" in had) == (False, True)
    answer = client.get("/pool/usage.csv")
    assert answer.text.splitlines() == ["owner,device_hours", "ann,2.5"]
    assert "<dt>GPU-hours today</dt><dd>2.5</dd>" in page
