from math import inf, nan

import pytest

from edt_launch.allocator.model import Owner, Usage
from edt_launch.allocator.tree import TreeError, grow


@pytest.mark.parametrize(
    "owners,message",
    [
        ([Owner("a"), Owner("a")], "two owners are called 'a'"),
        ([Owner("a", "b")], "'a' is below 'b', which does not exist"),
        ([Owner("a", "b"), Owner("b", "a")], "'a' is below itself"),
        ([Owner("a", weight=0)], "weight 0: it has to be from 1e-09 to 1e\\+09"),
        ([Owner("a", guarantee=-1)], "guarantee -1: it has to be 0 or more"),
        ([Owner("a", limit=-1)], "limit -1: it has to be 0 or more"),
        ([Owner("a", half_life=0)], "half-life 0: it has to be above 0"),
        ([Owner("a", usage=Usage(1.0, inf))], "remembered entitlement inf"),
        ([Owner("a", usage=Usage(nan))], "remembered service nan: it has to be 0 or more, and finite"),
        ([Owner("a", usage=Usage(at=nan))], "usage remembered up to nan: it has to be finite"),
    ],
)
def test_an_impossible_tree_is_refused(owners, message):
    with pytest.raises(TreeError, match=message):
        grow(owners, [], 4)


def test_parents_come_before_children_and_strangers_hang_below_the_root():
    nodes = grow([Owner("a", "b"), Owner("b")], ["new"], 4)
    assert [node.name for node in nodes] == ["", "b", "new", "a"]
    assert [node.name for node in nodes[3].path] == ["a", "b", ""]
