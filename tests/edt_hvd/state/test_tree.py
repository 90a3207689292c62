"""The values of a state as trees, and back."""

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.state.tree import ModuleKinds, companions_of, full_tree, load, modules_of, of_type
from states import Counter

pytestmark = pytest.mark.usefixtures("alone")


def values() -> dict[str, object]:
    model, average = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.Linear(2, 2)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    return {"model": model, "average": average, "optimizer": optimizer, "counter": Counter(), "epoch": 3}


def test_the_full_tree_has_all_values_and_companions() -> None:
    found = values()
    names = {"model.trainable", "model.caches", "average.trainable", "average.caches", "optimizer.gradients"}
    assert companions_of(found).keys() == names
    assert full_tree(found).keys() == found.keys() | names
    assert modules_of(found).keys() == {"model", "average"}
    assert of_type(found, int) == [3]


def test_the_small_tree_leaves_out_what_an_optimizer_steps() -> None:
    found = values()
    kinds = ModuleKinds.of(found)
    assert (kinds.stepped, kinds.plain) == ({"model"}, {"average"})
    small = kinds.small_tree(found)
    assert small["model"].keys() == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert small["average"].keys() == {"weight", "bias"}
    assert small["optimizer"][0]["lr"] == 0.1
    assert kinds.plain_parameters(found, small) == {("average", "weight"), ("average", "bias")}


def test_loading_returns_the_plain_values_and_writes_the_rest_into_the_objects() -> None:
    source, target = values(), values()
    counter = source["counter"]
    assert isinstance(counter, Counter)
    counter.count, source["epoch"] = 7, [5]
    replaced = load(target, full_tree(source))
    assert replaced == {"epoch": [5]}
    assert replaced["epoch"] is not source["epoch"]
    assert isinstance(target["counter"], Counter)
    assert target["counter"].count == 7
    saved, loaded = (full_tree(each)["model"] for each in (source, target))
    torch.testing.assert_close(loaded, saved, rtol=0, atol=0)
