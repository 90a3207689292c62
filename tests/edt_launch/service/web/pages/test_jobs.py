import re

import pytest

from browser import browser
from edt_launch.service.database.records import JobRecord
from edt_launch.service.states import State
from edt_launch.service.web.pages.jobs import PAGE
from world import NOW, World


def names(page: str) -> list[str]:
    return re.findall(r"<bdi>(.*?)</bdi>", page)


def test_the_newest_job_is_first_and_each_is_a_link(world: World) -> None:
    first = world.submit(world.ann, name="first")["id"]
    world.submit(world.bob, name="second")
    page = browser(world, "ann").get("/jobs").text
    assert names(page) == ["second", "first"]
    assert f'href="/jobs/{first}"' in page
    assert "waits for the next decision" in page


def test_filters_are_in_the_address(world: World) -> None:
    world.submit(world.ann, name="Digits")
    world.submit(world.bob, name="digits too")
    over = world.submit(world.ann, name="letters")["id"]
    world.go(over, State.STARTING, State.SUCCEEDED)
    client = browser(world, "ann")
    for query, found in {
        "?text=DIGITS": ["digits too", "Digits"],
        "?text=digits&owner=ann": ["Digits"],
        "?state=succeeded": ["letters"],
        f"?text={over[:4]}": ["letters"],
        "?text=%25": [],
        "": ["letters", "digits too", "Digits"],
    }.items():
        assert names(client.get(f"/jobs{query}").text) == found, query
    world.clock.now += 3601
    assert names(client.get("/jobs?owner=ann").text) == ["Digits"]
    assert names(client.get("/jobs?owner=ann&state=all").text) == ["letters", "Digits"]


def test_pages_follow_one_another(world: World) -> None:
    for number in range(PAGE + 1):
        world.store.jobs.add(
            JobRecord(
                f"jaaaaa{chr(97 + number // 26)}{chr(97 + number % 26)}a",
                "ann",
                ("true",),
                1,
                1,
                NOW,
                name=f"n{number}",
            )
        )
    client = browser(world, "ann")
    page = client.get("/jobs?owner=ann").text
    assert names(page)[0] == f"n{PAGE}"
    assert len(names(page)) == PAGE
    older = re.search(r'href="([^"]+)">Older jobs', page)
    assert older is not None
    last = client.get(older[1].replace("&amp;", "&")).text
    assert names(last) == ["n0"]
    assert "Older jobs" not in last


def test_without_jobs_it_says_how_to_submit_one(world: World) -> None:
    page = browser(world, "ann").get("/jobs").text
    assert "edt submit" in page
    assert "Show all that run or wait" in browser(world, "ann").get("/jobs?text=x").text


@pytest.mark.parametrize("query", ["state=nonsense", "after=-1", "after=x", "text=%00", "owner=%0a"])
def test_what_makes_no_sense_is_refused_as_a_page(world: World, query: str) -> None:
    answer = browser(world, "ann").get(f"/jobs?{query}")
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/html")


def test_markup_stays_text(world: World) -> None:
    world.submit(world.ann, name="<img src=x onerror=alert(1)>")
    page = browser(world, "bob").get('/jobs?text="><script>').text + browser(world, "bob").get("/jobs").text
    assert "<img" not in page
    assert "<script>" not in page


def test_rest_finds_the_same(world: World) -> None:
    for name in ("one", "two", "Twofold"):
        world.submit(world.ann, name=name)
    found = world.ann.get("/jobs?text=TWO&newest=1&limit=1").json()
    assert [job["name"] for job in found["jobs"]] == ["Twofold"]
    found = world.ann.get(f"/jobs?text=TWO&newest=1&after={found['next']}").json()
    assert [job["name"] for job in found["jobs"]] == ["two"]
    assert found["next"] is None


def test_jobs_of_a_host_of_a_time_and_in_another_order(world: World) -> None:
    first = world.submit(world.ann, name="first", priority=2)["id"]
    world.store.jobs.record({first: {"held": (("node1", ("0",)),), "share": 1.0}})
    world.clock.now += 7200
    world.submit(world.ann, name="second", priority=1)
    client = browser(world, "ann")
    for query, found in {
        "?host=node1": ["first"],
        "?host=node": [],
        "?last=1+h": ["second"],
        "?last=24+h": ["second", "first"],
        "?search=haaaaaaaa": [],
        "?sort=priority": ["second", "first"],
        "?sort=-priority": ["first", "second"],
        "?sort=share": ["first", "second"],
        "?sort=-share": ["first", "second"],
        "?sort=name": ["first", "second"],
    }.items():
        assert names(client.get(f"/jobs{query}").text) == found, query
    assert 'aria-sort="descending"' in client.get("/jobs?sort=-priority").text
    for query in ("last=9+y", "sort=command", "search=../x", "host=%22"):
        assert client.get(f"/jobs?{query}").status_code == 422, query


def test_an_order_has_pages_too(world: World) -> None:
    for number in range(PAGE + 20):
        name = "".join("abcdefghij"[int(digit)] for digit in f"{number:08}")
        world.store.jobs.add(
            JobRecord(f"j{name}", "ann", ("true",), 1, 1, NOW, name=name, priority=number % 3)
        )
    client = browser(world, "ann")
    page = client.get("/jobs?sort=-priority").text
    rest = client.get(re.findall(r'href="([^"]*after=[^"]*)"', page)[0].replace("&amp;", "&")).text
    assert len({*names(page), *names(rest)}) == PAGE + 20
    assert "More jobs" not in rest


def test_one_chooses_ones_own_jobs(world: World) -> None:
    world.submit(world.ann, name="mine")
    world.submit(world.bob, name="theirs")
    assert browser(world, "ann").get("/jobs").text.count('type="checkbox"') == 1
    assert browser(world, "admin").get("/jobs").text.count('type="checkbox"') == 2
