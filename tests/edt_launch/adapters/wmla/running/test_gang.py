"""Places of the processes that are not elastic."""

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.workers import of_rank, processes
from edt_launch.membership.protocol import Slot

SLOTS = (Slot("a", 0, "3"), Slot("b", 0, "1"), Slot("b", 1, "2"))


def test_a_gang_has_a_process_for_each_slot() -> None:
    assert processes(Framework.GANG, SLOTS) == SLOTS
    assert processes(Framework.ELASTIC, SLOTS) == SLOTS


def test_a_single_process_has_the_devices_of_the_host_with_the_most() -> None:
    assert processes(Framework.SINGLE, SLOTS) == (Slot("b", 0, "1,2"),)
    assert processes(Framework.SINGLE, (Slot("a", 0), Slot("a", 1))) == (Slot("a", 0),)
    assert processes(Framework.SINGLE, (Slot("a", 0, "7"), Slot("b", 0, "8"))) == (Slot("a", 0, "7"),)
    assert processes(Framework.SINGLE, ()) == ()


def test_ranks_count_along_the_allocation() -> None:
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
    ranks = [of_rank(SLOTS, slot) for slot in SLOTS]
    assert [tuple(rank[name] for name in names) for rank in ranks] == [
        ("0", "0", "1", "0"), ("1", "0", "2", "1"), ("2", "1", "2", "1"),
    ]  # fmt: skip
    assert all((rank["WORLD_SIZE"], rank["WMLA_NWORKER"]) == ("3", "3") for rank in ranks)
    assert {rank["WMLA_WORKER_NDEVICE"] for rank in ranks} == {"1"}
