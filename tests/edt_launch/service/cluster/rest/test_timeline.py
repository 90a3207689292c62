from edt_launch.service.cluster import schemas as cluster_schemas
from edt_launch.service.cluster.records import AllocationRecord, HostRecord
from edt_launch.service.jobs.states import State
from world import NOW, World


def allocate(world: World, job: str, ago: float, before: int, *devices: str) -> None:
    held = (("node1", devices),) if devices else ()
    world.store.history.add([AllocationRecord(job, "ann", NOW - ago, before, len(devices), held, "")])


def test_the_last_hour_by_default(world: World) -> None:
    first = world.submit(world.ann, name="first", max=4)["id"]
    world.go(first, State.STARTING)
    second = world.submit(world.bob, name="second")["id"]
    allocate(world, first, 7200, 0, "0", "1")
    allocate(world, first, 600, 2, "0")
    allocate(world, second, 600, 0, "1")
    allocate(world, second, 60, 1)
    told = world.bob.get("/timeline").json()
    assert (told["since"], told["until"]) == (NOW - 3600, NOW)
    assert [row["device"] for row in told["rows"]] == ["0", "1", "2", "3"]
    ids = [job["id"] for job in told["jobs"]]
    shown = {(row, ids[job], start - NOW, end - NOW) for row, job, start, end, _ in told["bars"]}
    assert shown == {(0, first, -3600, 0), (1, first, -3600, -600), (1, second, -600, -60)}
    assert told["resizes"] == [{"job": first, "time": NOW - 600, "from": 2, "to": 1}]
    assert told["complete"]
    assert told["losses"] == []
    assert [(one["owner"], one["devices"]) for one in told["owners"]] == [("ann", 0)]
    assert [(one["job"], one["from"], one["to"]) for one in told["changes"]] == [
        (first, 2, 1),
        (second, 0, 1),
        (second, 1, 0),
    ]
    cluster_schemas.Timeline.model_validate(told)


def test_rows_are_slots_or_hosts_or_the_slots_of_one(world: World) -> None:
    world.store.hosts.put([HostRecord("node2", ("0",), source="test")])
    job = world.submit(world.ann, max=4)["id"]
    allocate(world, job, 1800, 0, "0", "1")
    hosts = world.bob.get("/timeline?rows=hosts").json()
    assert (hosts["rows"], hosts["bars"]) == ([], [])
    assert hosts["hosts"] == [{"host": "node1", "devices": 4}, {"host": "node2", "devices": 1}]
    assert hosts["bands"] == [[0, NOW - 1800, NOW, 2.0]]
    one = world.bob.get("/timeline?host=node2").json()
    assert (one["rows"], one["bars"], one["bands"]) == ([{"host": "node2", "device": "0"}], [], [])
    slots = world.bob.get("/timeline?host=node1").json()
    assert [bar[0] for bar in slots["bars"]] == [0, 1]
    assert world.bob.get("/timeline?rows=racks").status_code == 422
    cluster_schemas.Timeline.model_validate(hosts)
