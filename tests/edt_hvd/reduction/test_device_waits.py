"""How often a training step asks its device something and waits for the answer; the CPU stands for a GPU."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import edt_hvd
from edt_hvd.digests import digest
from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
from edt_hvd.reduction.fixed_point import cuda as fixed_point_cuda
from edt_hvd.reduction.fixed_point import tensor_sum as fixed_point_sum
from edt_hvd.reduction.gradients import exact

pytestmark = pytest.mark.usefixtures("alone")


class Asked(TorchDispatchMode):
    """Counts the numbers that are read from tensors of a device, and the operations on it."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = self.operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.answers += function is torch.ops.aten._local_scalar_dense.default
        self.operations += 1
        return function(*args, **(kwargs or {}))


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    tolist: Callable[[torch.Tensor], Any] = torch.Tensor.tolist

    def counted(tensor: torch.Tensor) -> Any:
        asked.answers += 1
        return tolist(tensor)

    with monkeypatch.context() as patched, Asked() as asked:
        patched.setattr(torch.Tensor, "tolist", counted)
        yield asked


class Kernels:
    """Does what the kernels of a GPU do: the sizes become known on the device."""

    def __init__(self) -> None:
        self.launches = 0

    def accumulate_parts(
        self, gradients: Any, factors: Any, total: Any, starts: Any, limits: Any, largest: torch.Tensor
    ) -> None:
        self.launches += 1
        assert len({*starts}) == len(starts), "two programs would write to the same integers"
        parts = zip(gradients, factors, starts, limits, largest.split(1), strict=True)  # type: ignore[no-untyped-call]
        for each, factor, start, limit, found in parts:
            size = fixed_point.accumulate(each, factor, total.narrow(0, start, each.numel()), limit)
            found.copy_(torch.maximum(found, torch.tensor([size], dtype=torch.float64)))

    def to_float_parts(self, total: torch.Tensor, starts: Any, scales: Any, out: torch.Tensor) -> None:
        self.launches += 1
        assert out.untyped_storage().data_ptr() != total.untyped_storage().data_ptr(), (
            "read and written at once"
        )
        for start, end, scale in zip(starts, [*starts[1:], total.numel()], scales, strict=True):
            fixed_point.to_float(total[start:end], scale, out[start:end])


@pytest.fixture(scope="module", autouse=True)
def _no_other_states() -> None:
    """Buffers of other files' states would be added up, too."""
    gc.unfreeze()
    gc.collect()


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    kernels = Kernels()
    for module in (fixed_point_sum, exact):
        monkeypatch.setattr(module, "is_asynchronous", lambda values: True)
    monkeypatch.setattr(fixed_point_cuda, "accumulate_parts", kernels.accumulate_parts)
    monkeypatch.setattr(fixed_point_cuda, "to_float_parts", kernels.to_float_parts)
    return kernels


def network(blocks: int) -> nn.Module:
    torch.manual_seed(0)
    layers = [
        nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()) for _ in range(blocks)
    ]
    return nn.Sequential(nn.Conv2d(1, 4, 1), *layers, nn.Flatten(), nn.Linear(4 * 36, 3))


def train(model: nn.Module, micro_batches: int, each: Callable[[], Any] = lambda: None) -> list[Any]:
    """Three steps; what `each` gives after them."""
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    samples = torch.randn(3 * 4 * micro_batches, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    loader = edt_hvd.ElasticDataLoader(list(samples), 4 * micro_batches, 4, shuffle=False)
    found = []
    for step in loader:
        for inputs in step:
            step.backward(model(inputs).square().mean())
        optimizer.step()
        optimizer.zero_grad()
        found.append(each())
    return found


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("micro_batches, most", [(1, 8), (4, 14)])
def test_what_is_asked_in_a_step_does_not_grow_with_the_model(
    micro_batches: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {}
    for blocks in (1, 3):
        with counting(monkeypatch) as asked:
            after = train(network(blocks), micro_batches, lambda: asked.answers)
        answers[blocks] = after[2] - after[1]
    assert answers[1] == answers[3] <= most, answers


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_a_bucket_takes_one_kernel_for_a_micro_batch_and_one_to_be_read(
    micro_batches: int, as_on_a_gpu: Kernels
) -> None:
    model = nn.Sequential(nn.Flatten(), *(nn.Linear(36, 36) for _ in range(4)))
    after = train(model, micro_batches, lambda: as_on_a_gpu.launches)
    assert after[2] - after[1] == micro_batches + 1, "all parameters are in one bucket"


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_sizes_that_are_read_later_change_no_bit(micro_batches: int, request: pytest.FixtureRequest) -> None:
    found = []
    for _ in range(2):
        model = network(1)
        with torch.no_grad():
            model[0].weight[0] = 3e4  # far outside of what a first step expects
        train(model, micro_batches)
        found.append(digest(model.state_dict()))
        request.getfixturevalue("as_on_a_gpu")
    assert found[0] == found[1]
