"""Horovod's worlds over Gloo: what workers find, and the stores of the generations."""

from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from edt_launch.membership.protocol import Assignment, MemberPhase, Slot, Worker
from edt_launch.worlds.gloo import KEPT_GENERATIONS, GlooWorld

TWO = (Assignment(7, 0, 2, 0, 2, 0, 1, "here"), Assignment(9, 1, 2, 1, 2, 0, 1, "here"))


@pytest.fixture
def world() -> Iterator[GlooWorld]:
    one = GlooWorld(lambda hosts: "127.0.0.1")
    yield one
    one.close()


WORKER = Worker(7, Slot("here", 1), MemberPhase.STARTING, started_at=0.0, rank=1)


def ask(world: GlooWorld, port: object, path: str) -> bytes:
    token = world.variables(WORKER, ["here"])["HOROVOD_RENDEZVOUS_TOKEN"]
    request = Request(f"http://127.0.0.1:{port}/{path}", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request) as answer:
        found: bytes = answer.read()
    return found


def test_workers_find_what_horovod_looks_for(world: GlooWorld) -> None:
    found = world.variables(WORKER, ["here"])
    expected = {
        "HOROVOD_ELASTIC": "1",
        "HOROVOD_HOSTNAME": "here",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
    }
    assert {name: found[name] for name in expected} == expected
    assert not found.keys() & {"HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME"}  # by where it meets the others


def test_members_find_their_ranks_at_the_port_that_they_are_told(world: GlooWorld) -> None:
    _, port = world.open(1, TWO)
    assert ask(world, port, "rank_and_size/here:1") == b"1,2,1,2,0,1"


def test_only_the_newest_generations_are_served(world: GlooWorld) -> None:
    ports = [world.open(generation, TWO)[1] for generation in range(KEPT_GENERATIONS + 1)]
    with pytest.raises(URLError):
        ask(world, ports[0], "rank_and_size/here:0")
    assert ask(world, ports[1], "rank_and_size/here:0")
    world.close()
    with pytest.raises(URLError):
        ask(world, ports[-1], "rank_and_size/here:0")
