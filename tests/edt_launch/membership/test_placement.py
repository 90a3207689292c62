"""Ranks, local ranks and cross ranks of a world's members."""

from edt_launch.membership.placement import assign
from edt_launch.membership.protocol import MemberPhase, Slot, Worker


def members(*slots: tuple[str, int], **changes: dict[int, int]) -> list[Worker]:
    """Workers at the rendezvous; `changes` sets attributes of single ones by number."""
    return [
        Worker(
            id=number,
            slot=Slot(host, index),
            phase=MemberPhase.READY,
            started_at=0.0,
            rank=changes.get("rank", {}).get(number, number),
            generation=changes.get("generation", {}).get(number, 0),
            has_state=bool(changes.get("generation", {}).get(number)),
            progress=changes.get("progress", {}).get(number, 0),
        )
        for number, (host, index) in enumerate(slots)
    ]


def test_workers_of_a_host_stand_together_in_the_order_of_their_slots() -> None:
    assignments = assign(members(("a", 1), ("b", 0), ("a", 0), ("b", 1), rank={0: 9}), 0)
    assert [(p.worker, p.host, p.local_rank, p.cross_rank, p.cross_size) for p in assignments] == [
        (1, "b", 0, 0, 2),
        (3, "b", 1, 0, 2),
        (2, "a", 0, 1, 2),
        (0, "a", 1, 1, 2),
    ]
    assert [(p.rank, p.size, p.local_size) for p in assignments] == [(rank, 4, 2) for rank in range(4)]


def test_the_root_is_a_member_of_the_last_generation_with_the_most_progress() -> None:
    some = members(
        ("a", 0), ("a", 1), ("a", 2), generation={1: 3, 2: 3}, progress={0: 99, 1: 7, 2: 8}, rank={1: 0, 2: 1}
    )
    assert [p.worker for p in assign(some, 3)] == [2, 0, 1]


def test_among_equals_the_coordinator_stays() -> None:
    some = members(("a", 0), ("a", 1), generation={0: 3, 1: 3}, rank={0: 1, 1: 0})
    assert assign(some, 3)[0].worker == 1
