"""Trees of tensors and plain values as bytes."""

from typing import Any

import pytest
import torch

from edt_hvd.state import flat
from edt_hvd.state.flat import FlatTree


def everything() -> dict:
    generator = torch.Generator().manual_seed(1)
    return {
        "weights": {
            dtype: torch.randn(7, 3, generator=generator).to(dtype)
            for dtype in (torch.float32, torch.bfloat16)
        },
        "count": torch.tensor(5, dtype=torch.int64),
        "mask": torch.tensor([True, False, True]),
        "complex": torch.randn(2, 2, dtype=torch.complex64, generator=generator),
        "empty": torch.zeros(0, 4),
        "transposed": torch.arange(6.0).reshape(2, 3).T,
        "special": torch.tensor([float("nan"), -0.0, float("inf")]),
        "plain": [1, "two", (3.0, None), {"set": {4, 5}}],
    }


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def sent(tree: FlatTree, size: int = 64) -> Any:
    """What another worker makes of it, received in pieces."""
    found = flat.empty(tree.skeleton())
    into = FlatTree(found)
    assert (into.layout, into.size) == (tree.layout, tree.size)
    for (part, source), (other, target) in zip(tree.pieces(size), into.pieces(size), strict=True):
        assert part == other
        piece = torch.zeros(len(part), dtype=torch.uint8)
        tree.write(piece, part.start)
        assert source is None or torch.equal(source, piece)
        if target is None:
            into.fill(piece, part.start)
        else:
            target.copy_(piece)
    return found


@pytest.mark.parametrize("own_piece", [flat.OWN_PIECE, 1, 20])
def test_a_tree_comes_back_bit_by_bit(monkeypatch: pytest.MonkeyPatch, own_piece: int) -> None:
    monkeypatch.setattr(flat, "OWN_PIECE", own_piece)
    tree = everything()
    back = sent(FlatTree(tree))
    assert back["plain"] == tree["plain"]
    assert list(back) == list(tree)
    for name in ("count", "mask", "complex", "empty", "transposed", "special"):
        assert (back[name].dtype, back[name].shape) == (tree[name].dtype, tree[name].shape)
        assert torch.equal(bits(back[name]), bits(tree[name]))
    for dtype, tensor in tree["weights"].items():
        assert torch.equal(back["weights"][dtype], tensor)


def test_the_layout_says_which_tensor_lies_where() -> None:
    first, second = {"a": torch.zeros(3), "b": torch.ones(3)}, {"b": torch.ones(3), "a": torch.zeros(3)}
    assert FlatTree(first).layout != FlatTree(second).layout
    assert FlatTree([first, {0: first}]).layout != FlatTree([first, {1: first}]).layout


def test_sparse_tensors_travel_with_the_plain_values() -> None:
    sparse = torch.eye(3).to_sparse()
    tree = FlatTree({"sparse": sparse})
    assert tree.size == 0
    assert torch.equal(sent(tree)["sparse"].to_dense(), torch.eye(3))
