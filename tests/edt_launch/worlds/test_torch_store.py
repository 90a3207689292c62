"""Stores of torch for the generations of a job, in a process beside this one."""

import pytest

from edt_launch.core.errors import StartError
from edt_launch.membership.protocol import MemberPhase, Slot, Worker
from edt_launch.worlds.torch_store import TorchStoreWorld


def of_generation(number: int) -> Worker:
    return Worker(0, Slot("a", 0), MemberPhase.STARTING, 0.0, 0, generation=number)


def test_every_generation_has_a_store_of_its_own_until_a_newer_one_is_open() -> None:
    from torch.distributed import TCPStore

    world = TorchStoreWorld(lambda hosts: "127.0.0.1")
    try:
        ports = [int(world.variables(of_generation(number), ["here"])["MASTER_PORT"]) for number in (1, 2)]
        assert world.variables(of_generation(2), ["here"])["MASTER_PORT"] == str(ports[1])
        stores = [TCPStore("127.0.0.1", port, is_master=False) for port in ports]
        stores[0].set("key", "of the first")
        assert not stores[1].check(["key"])
        assert world.open(2, ()) == ("127.0.0.1", ports[1])
        stores[1].set("key", "of the second")
        with pytest.raises(RuntimeError):
            stores[0].get("key")
    finally:
        world.close()
    with pytest.raises(StartError, match="does not answer"):
        world.variables(of_generation(3), ["here"])
