"""Nodes of an allocation, and when they have to form a new world."""

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, parse
from edt_rendezvous.membership import Node, World, is_restart_under_way, must_restart, own_rank, world_of

TEXT = "# edt allocation v1 generation=3\nb:4 devices=4,5,6,7\na:3 devices=0,1,2\nc:1 devices=9\n"


def test_every_so_many_slots_of_a_host_are_a_node_with_their_devices():
    assert world_of(parse(TEXT), workers=2, max_nodes=9) == World(
        3, (Node("b", 0, ("4", "5")), Node("b", 1, ("6", "7")), Node("a", 0, ("0", "1")))
    )
    assert len(world_of(parse(TEXT), workers=1, max_nodes=5).nodes) == 5
    assert world_of(Allocation(1, (HostSlots("a", 1),)), 1, 1).nodes == (Node("a", 0, None),)


def test_ranks_follow_the_allocation_and_count_all_names_of_a_machine():
    world = world_of(parse(TEXT), 2, 9)
    assert [own_rank(world, lambda host: host == "b", seat) for seat in range(3)] == [0, 1, None]
    assert [own_rank(world, lambda host: host in "ab", seat) for seat in range(4)] == [0, 1, 2, None]


def nodes(generation: int, hosts: str) -> World:
    return World(generation, tuple(Node(host, 0) for host in hosts))


@pytest.mark.parametrize(
    "target, arrived, expected",
    [
        pytest.param("ab", set(), False, id="nothing has changed"),
        pytest.param("a", set(), True, id="one has to leave"),
        pytest.param("ac", set(), True, id="one is replaced"),
        pytest.param("abcd", set(), False, id="newcomers are on their way"),
        pytest.param("cabd", {0}, False, id="one of two newcomers is there"),
        pytest.param("cabd", {0, 3}, True, id="all newcomers are there"),
        pytest.param("", set(), True, id="all have to leave"),
    ],
)
def test_running_nodes_stop_when_they_have_to_and_not_before_newcomers_are_there(target, arrived, expected):
    assert must_restart(nodes(1, "ab"), nodes(2, target), arrived) is expected


def test_nodes_whose_workers_have_failed_have_the_others_begin_again():
    assert is_restart_under_way(nodes(1, "ab"), nodes(1, "ab"), {1})
    assert is_restart_under_way(nodes(1, "ab"), nodes(2, "cabd"), {1})
    assert not is_restart_under_way(nodes(1, "ab"), nodes(2, "cabd"), {0, 3})
