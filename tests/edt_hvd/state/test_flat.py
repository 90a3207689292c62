"""Trees of tensors and plain values as bytes."""

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


def whole(tree: FlatTree) -> torch.Tensor:
    found = torch.zeros(tree.size, dtype=torch.uint8)
    tree.write(found, 0)
    return found


def skeleton(tree: FlatTree) -> torch.Tensor:
    return torch.frombuffer(bytearray(tree.skeleton()), dtype=torch.uint8)


def test_a_tree_comes_back_bit_by_bit() -> None:
    tree = everything()
    back = flat.read(skeleton(FlatTree(tree)), whole(FlatTree(tree)))
    assert back["plain"] == tree["plain"]
    assert list(back) == list(tree)
    for name in ("count", "mask", "complex", "empty", "transposed", "special"):
        assert (back[name].dtype, back[name].shape) == (tree[name].dtype, tree[name].shape)
        assert torch.equal(bits(back[name]), bits(tree[name]))
    for dtype, tensor in tree["weights"].items():
        assert torch.equal(back["weights"][dtype], tensor)


@pytest.mark.parametrize("length", [1, 5, 64, 100])
def test_pieces_are_the_whole(length: int) -> None:
    tree = FlatTree(everything())
    pieces = []
    for start in range(0, tree.size, length):
        pieces.append(torch.zeros(min(length, tree.size - start), dtype=torch.uint8))
        tree.write(pieces[-1], start)
    assert torch.equal(torch.cat(pieces), whole(tree))


def test_the_layout_says_which_tensor_lies_where() -> None:
    first, second = {"a": torch.zeros(3), "b": torch.ones(3)}, {"b": torch.ones(3), "a": torch.zeros(3)}
    assert FlatTree(first).layout != FlatTree(second).layout
    assert FlatTree([first, {0: first}]).layout != FlatTree([first, {1: first}]).layout


def test_sparse_tensors_travel_with_the_plain_values() -> None:
    sparse = torch.eye(3).to_sparse()
    tree = FlatTree({"sparse": sparse})
    assert tree.size == 0
    assert torch.equal(flat.read(skeleton(tree), whole(tree))["sparse"].to_dense(), torch.eye(3))
