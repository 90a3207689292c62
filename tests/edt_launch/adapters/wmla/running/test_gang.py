"""Places of the processes that are not elastic."""

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.environment import Member
from edt_launch.adapters.wmla.running.gang import members, processes
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


def test_places_count_along_the_allocation() -> None:
    assert list(members(SLOTS).values()) == [
        Member(rank=0, size=3, local_rank=0, local_size=1, node=0),
        Member(rank=1, size=3, local_rank=0, local_size=2, node=1),
        Member(rank=2, size=3, local_rank=1, local_size=2, node=1),
    ]
    assert set(members(SLOTS)) == {slot.key for slot in SLOTS}
