"""What is copied at every commit, and what is made of it together with a full copy."""

from typing import Any

import pytest
import torch

from edt_hvd.state.recovery.rollback_point import ROLLBACK_POINT_BYTES, RollbackPoint, large_of

BYTES = torch.uint8


def tree() -> dict[str, Any]:
    mask, mean = torch.zeros(2 * ROLLBACK_POINT_BYTES, dtype=BYTES), torch.zeros(4)
    return {"model": {"mask": mask, "mean": mean}, "optimizer": [{"lr": 0.1}], "epoch": 1}


MASK = ("model", "mask")


def test_only_the_largest_are_left_out() -> None:
    found = large_of(tree(), {"model"})
    assert found is not None
    assert found == {MASK}
    point = RollbackPoint.of(tree(), found)
    assert list(point.tree["model"]) == ["mean"]
    assert (point.tree["optimizer"], point.tree["epoch"]) == ([{"lr": 0.1}], 1)
    assert large_of({"model": {"mean": torch.zeros(4)}}, {"model"}) == frozenset()


def test_what_belongs_to_no_module_cannot_be_left_out() -> None:
    assert large_of({"history": {"all": torch.zeros(ROLLBACK_POINT_BYTES)}}, set()) is None


def test_copies_share_nothing_and_what_was_left_out_is_the_full_copys() -> None:
    now, full = tree(), tree()
    point = RollbackPoint.of(now, frozenset([MASK]))
    now["model"]["mean"] += 1
    found = point.completed(now, full)
    assert found["model"]["mean"].tolist() == [0.0] * 4
    assert found["model"]["mask"] is full["model"]["mask"]


def count_a_write(now: dict[str, Any], full: dict[str, Any]) -> None:
    now["model"]["mask"] += 0


def write_uncounted(now: dict[str, Any], full: dict[str, Any]) -> None:
    now["model"]["mask"].data[7] = 1


def take_out(now: dict[str, Any], full: dict[str, Any]) -> None:
    del now["model"]["mask"]


def put_in(now: dict[str, Any], full: dict[str, Any]) -> None:
    del full["model"]["mask"]


def another_shape(now: dict[str, Any], full: dict[str, Any]) -> None:
    full["model"]["mask"] = torch.zeros(3, dtype=BYTES)


@pytest.mark.parametrize("change", [count_a_write, write_uncounted, take_out, put_in, another_shape])
def test_what_may_have_changed_is_not_taken_for_the_commits(change: Any) -> None:
    now, full = tree(), tree()
    point = RollbackPoint.of(now, frozenset([MASK]))
    assert point.completed(now, None) is None
    change(now, full)
    assert point.completed(now, full) is None
