from types import SimpleNamespace

from browser import browser
from edt_launch.cluster.nvidia import Load
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.states import State
from world import NOW, World


def test_hosts_with_load_and_what_their_gpus_do(world: World) -> None:
    job = world.submit(world.ann, max=4)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    world.store.jobs.record({job: {"size": 2, "held": (("node1", ("0", "1")),)}})
    machines = world.context.machines
    machines.own_names, machines.heard = {"node1"}, NOW - 3
    loads = {"0": Load(1000, 0.0), "1": Load(2000, 50.0)}
    machines.meter = SimpleNamespace(loads=lambda _: loads)
    world.store.hosts.put([HostRecord("node2", ("0",), is_up=False, source="test", changed=NOW - 60)])
    page = browser(world, "ann").get("/console/hosts").text
    assert "<td>2 of 4</td>" in page
    assert "<td>3.1 GB, 25%</td>" in page
    assert ">3s ago</time>" in page
    assert "1m ago" in page
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
