"""What each worker has made by itself is compared; several workers are threads."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import edt_hvd
from crew import together
from edt_hvd.errors import GradientError
from edt_hvd.reduction import agreement
from edt_hvd.reduction.comparison import difference, first_difference

pytestmark = pytest.mark.usefixtures("alone")


def described(**changes: Any) -> Mapping[str, str]:
    """What a worker says of an optimizer that it has made."""
    given = {
        "order": [0, 1, 2, 3],
        "width": 3,
        "dtype": torch.float32,
        "frozen": (),
        "lr": 0.1,
        "bits": 64,
    } | changes
    model = nn.Sequential(nn.Linear(2, given["width"]), nn.Linear(given["width"], 3)).to(given["dtype"])
    parameters = list(model.parameters())
    for number in given["frozen"]:
        parameters[number].requires_grad_(False)
    state = edt_hvd.TorchState(model=model)
    optimizer = torch.optim.SGD([parameters[number] for number in given["order"]], lr=given["lr"])
    edt_hvd.DistributedOptimizer(optimizer, integer_bits=given["bits"])
    found = optimizer._edt_reducer.describe()  # type: ignore[attr-defined]
    del state
    number = str(optimizer._edt_reducer.place + 1)  # type: ignore[attr-defined]
    return {what.replace(f"optimizer {number}", "optimizer 1"): value for what, value in found.items()}


FIRST = "parameter 0 in group 0 of distributed optimizer 1"


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, None),
        ({"order": [2, 1, 0, 3]}, f"{FIRST} is model.0.weight float32[3, 2] on rank 0 and model.1.weight f"),
        (
            {"order": [0, 1, 2]},
            "parameter 3 in group 0 of distributed optimizer 1 is model.1.bias float32[3] o",
        ),
        ({"dtype": torch.float64}, "and model.0.weight float64[3, 2] on rank 2"),
        ({"frozen": [0]}, "and model.0.weight float32[3, 2], frozen on rank 2"),
        ({"lr": 0.2}, "lr in group 0 of distributed optimizer 1 is 0.1 on rank 0 and 0.2 on rank 2"),
        ({"bits": 32}, "distributed optimizer 1 is SGD, reduction='exact', 64 bits"),
    ],
    ids=lambda value: next(iter(value), "same") if isinstance(value, dict) else "",
)
def test_the_first_difference_is_named_with_both_values(
    changes: dict[str, Any], expected: str | None
) -> None:
    workers = [described(), described(), described(**changes)]
    found = difference(workers)
    assert (found is None) == (expected is None)
    assert (expected or "") in (found or "")
    assert together(3, lambda rank: first_difference(lambda: workers[rank], "test")) == [found] * 3


def test_workers_that_do_not_train_the_same_all_end_first_in_a_world() -> None:
    agreement.reset()
    found = []

    def work(rank: int) -> None:
        try:
            agreement.exchange([np.zeros(rank, dtype=np.int32)], describe=lambda: {"a": "b"})
        except GradientError as error:
            found.append(str(error))

    together(2, work)
    assert len(set(found)) == 1
    assert len(found) == 2
    assert "the number of values to report is [0] on rank 0 and [1] on rank 1. Each worker" in found[0]


def test_a_break_by_one_worker_alone_ends_all_with_what_happened() -> None:
    agreement.reset()
    together(2, lambda rank: agreement.exchange([]))
    counts: list[int] = []

    def work(rank: int) -> None:
        if rank == 1:
            agreement.note_loop()
        counts.append(agreement._loops)
        agreement.exchange([], capacity=rank + 1)

    with pytest.raises(GradientError, match="same loop over a loader"):
        together(2, work)
