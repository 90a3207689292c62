import html
import re
from collections.abc import Iterable

import pytest

from browser import browser
from edt_launch.cluster.nvidia import Load
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.states import State
from world import NOW, World


def running(world: World, name: str, *devices: str, most: int = 4) -> str:
    job: str = world.submit(world.ann, name=name, max=most)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", devices),)
    world.store.jobs.record({job: {"size": len(devices), "held": held, "started": NOW - 90}})
    return job


def test_applications_have_the_words_of_a_clusters_console(world: World) -> None:
    job = running(world, "<b>digits", "0", "1", "cpu0")
    page = browser(world, "bob").get("/console/applications").text
    assert "&lt;b&gt;digits" in page
    assert job in page
    assert "<td>ann</td><td>Elastic</td>" in page
    # CPU slots, GPU slots, priority
    assert "<td>1</td><td>2</td><td>0</td>" in page
    assert "<td>1 min 30 s</td>" in page
    assert 'aria-sort="descending"' in page
    assert f'value="{job}"' not in page
    assert f'value="{job}"' in browser(world, "ann").get("/console/applications").text


@pytest.mark.parametrize(
    "query, found",
    [
        ("column=text&text=IGIT", {"digits"}),
        ("column=owner&text=NN", {"digits", "other"}),
        ("column=state&text=%25", set()),
        ("sort=gpu", None),
    ],
)
def test_a_filter_finds_what_contains_a_text(world: World, query: str, found: set[str] | None) -> None:
    running(world, "digits", "0")
    world.submit(world.ann, name="other")
    answer = browser(world, "ann").get(f"/console/applications?{query}")
    if found is None:
        assert answer.status_code == 422
    else:
        assert {name for name in ("digits", "other") if f"<bdi>{name}</bdi>" in answer.text} == found
        for address in re.findall(r'href="/api/v1(/jobs[^"]*)"', answer.text):
            jobs = world.ann.get(html.unescape(address)).json()["jobs"]
            assert {job["name"] for job in jobs} == found


def test_hosts_with_load_and_what_their_gpus_do(world: World) -> None:
    running(world, "digits", "0", "1")
    machines = world.context.machines
    machines.own_names, machines.heard = {"node1"}, NOW - 3
    machines.meter = Meter()
    world.store.hosts.put([HostRecord("node2", ("0",), is_up=False, source="test", changed=NOW - 60)])
    page = browser(world, "ann").get("/console/hosts").text
    assert "<td>2 of 4</td>" in page
    assert "<td>3.15 GB, 25%</td>" in page
    assert ">3 s ago</time>" in page
    assert "1 min ago" in page
    assert "Drain" not in page
    shown = {host["name"]: host for host in world.ann.get("/hosts").json()["hosts"]}
    assert shown["node1"]["load"]["gpus"]["1"] == {"memory": 2000, "utilization": 50.0}
    assert shown["node1"]["load"]["processors"] >= 0
    assert 0 < shown["node1"]["load"]["memory"] <= 1
    assert (shown["node2"]["load"], shown["node2"]["heard"], shown["node1"]["jobs"]) == (None, NOW - 60, 1)
    admin = browser(world, "admin")
    assert "/pool/hosts/node1/drain?back=/console/hosts" in admin.get("/console/hosts").text
    assert 'value="/console/hosts"' in admin.get("/pool/hosts/node1/drain?back=/console/hosts").text
    answer = admin.post("/pool/hosts/node1/drain", data={"back": "/console/hosts"})
    assert answer.headers["location"] == "/console/hosts"


class Meter:
    """GPUs of which two answer."""

    def loads(self, names: Iterable[str]) -> dict[str, Load]:
        known = {"0": Load(1000, 0.0), "1": Load(2000, 50.0)}
        return {name: known[name] for name in names if name in known}
