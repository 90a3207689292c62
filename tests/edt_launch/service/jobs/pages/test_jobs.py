import re

import pytest

from browser import browser, shown_again
from edt_launch.service.jobs.states import State
from lab import Lab
from world import NOW, World


def names(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*><bdi>(.*?)</bdi>', page)


def test_markup_stays_text(world: World) -> None:
    world.submit(world.ann, name="<img src=x onerror=alert(1)>")
    page = browser(world, "bob").get('/jobs?text="><script>').text + browser(world, "bob").get("/jobs").text
    assert "<img" not in page
    assert "<script>" not in page


def test_a_row_tells_what_a_job_does(world: World) -> None:
    job = world.submit(world.ann, name="digits", max=4, priority=3)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    fields = {"size": 2, "target": 4, "step": 30, "total_steps": 120, "throughput": 0.5, "started": NOW}
    world.store.jobs.record({job: fields})
    page = browser(world, "ann").get("/jobs").text
    row = re.sub("<[^>]*>", " ", page[page.index(f'id="{job}"') : page.index('id="bulk"')])
    assert "running 2→4 of 1-4 25% 3m ann 3 - now" in re.sub(r"\s+", " ", row)


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
        "?sort=priority": ["second", "first"],
        "?sort=-priority": ["first", "second"],
        "?sort=name": ["first", "second"],
    }.items():
        assert names(client.get(f"/jobs{query}").text) == found, query
    assert 'aria-sort="descending"' in client.get("/jobs?sort=-priority").text
    world.clock.now += 1
    world.go(first, State.STARTING, State.SUCCEEDED)
    assert names(client.get("/jobs?sort=-since").text) == ["first", "second"]
    assert names(client.get("/jobs?sort=-submitted").text) == ["second", "first"]


@pytest.mark.parametrize(
    "query, told",
    [
        ("last=9+y", "last: &#39;9 y&#39; is not possible: choose one of 1 h"),
        ("host=a+b", "host: &#39;a b&#39;: expected a host&#39;s name: letters, digits"),
    ],
)
def test_the_filter_says_what_is_wrong_with_it(world: World, query: str, told: str) -> None:
    answer = browser(world, "ann").get(f"/jobs?{query}")
    shown_again(answer, 422, told)


def test_one_box_finds_by_every_field(world: World) -> None:
    client = browser(world, "ann")
    asked = client.get("/jobs?state=all&find=net+owner:bob+a:b+host:node1&last=1+h")
    address = "/jobs?state=all&owner=bob&text=net+a%3Ab&host=node1&last=1+h"
    assert (asked.status_code, asked.headers["location"]) == (303, address)
    assert 'value="owner:bob host:node1 net a:b"' in client.get(address).text


def test_runs_name_their_experiment_to_those_who_may_see_it(world: World) -> None:
    lab = Lab(world)
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.run(experiment)
    world.submit(world.ann, name="another")
    link = f'<a href="/experiments/{experiment}"><bdi>first</bdi></a>'
    for name, is_seen in {"ann": True, "admin": True, "bob": False}.items():
        assert (link in browser(world, name).get("/jobs").text) is is_seen, name
    assert names(browser(world, "ann").get(f"/jobs?experiment={experiment}").text) == ["net"]
    rest = world.ann.get(f"/jobs?experiment={experiment}").json()["jobs"]
    assert [job["name"] for job in rest] == ["net"]
