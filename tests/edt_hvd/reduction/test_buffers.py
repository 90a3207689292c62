"""Buffers over a step; several workers are divisions of a step among copies of a model, reduced by hand."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import edt_hvd
from edt_hvd.reduction.buffers import BufferMean
from examples import fewer

pytestmark = pytest.mark.usefixtures("alone")

Body = Callable[[nn.Module, Any], None]


def forward(module: nn.Module, data: Any) -> None:
    module(data)


def run(mean: BufferMean, module: nn.Module, micro_batches: Sequence[Any], body: Body = forward) -> None:
    """A step of one worker, over micro-batches of one size."""
    _run_share(mean, module, micro_batches, range(len(micro_batches)), body)
    mean.finish_pass(mean.report()[None])


def _run_share(
    mean: BufferMean, module: nn.Module, micro_batches: Sequence[Any], share: Sequence[int], body: Body
) -> None:
    mean.begin_pass(len(micro_batches))
    for number in share:
        body(module, micro_batches[number])
        mean.after_micro_batch(1 / len(micro_batches))


def run_together(
    modules: Sequence[nn.Module], micro_batches: Sequence[Any], shares: Sequence[Sequence[int]]
) -> None:
    """A step of several workers."""
    means = [following(module) for module in modules]
    for mean, module, share in zip(means, modules, shares, strict=True):
        _run_share(mean, module, micro_batches, share, forward)
    finish_together(means)


def finish_together(means: Sequence[BufferMean]) -> None:
    reports = np.stack([mean.report() for mean in means])
    summed: dict[str, list[torch.Tensor]] = {}

    def send(parts: list[torch.Tensor], name: str) -> None:
        for mine, theirs in zip(
            summed.setdefault(name, [p.clone().zero_() for p in parts]), parts, strict=True
        ):
            mine.add_(theirs)

    def receive(parts: list[torch.Tensor], name: str) -> None:
        for part, total in zip(parts, summed[name], strict=True):
            part.copy_(total)

    for mean in means:  # once to send what a transfer would sum, once more to receive it
        sender = copy.deepcopy(mean)
        sender._reduce = send  # type: ignore[method-assign,assignment]
        sender.finish_pass(reports)
    for mean in means:
        mean._reduce = receive  # type: ignore[method-assign,assignment]
        mean.finish_pass(reports)


def following(module: nn.Module) -> BufferMean:
    mean = BufferMean()
    mean.track(module)
    return mean


def bits_of(module: nn.Module) -> dict[str, bytes]:
    return {name: buffer.numpy().tobytes() for name, buffer in module.named_buffers()}


def left_alone(
    module: nn.Module, micro_batches: Sequence[Any], body: Body = forward
) -> dict[str, torch.Tensor]:
    """The mean, summed exactly, of the buffers that each micro-batch alone leaves."""
    copies = [copy.deepcopy(module) for _ in micro_batches]
    for each, data in zip(copies, micro_batches, strict=True):
        body(each, data)
    found = {}
    for name, buffer in module.named_buffers():
        rows = [dict(each.named_buffers())[name].double().reshape(-1).tolist() for each in copies]
        means = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        found[name] = torch.tensor(means, dtype=torch.float64).view(buffer.shape)
    return found


def inputs(count: int, seed: int = 0, scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(5, 4, generator=generator) * scale + 0.5 for _ in range(count)]


class Counting(nn.Module):
    """Changes its buffers in ways of its own."""

    def __init__(self, **buffers: torch.Tensor) -> None:
        super().__init__()
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)


# The mean of what the micro-batches alone leave.


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_batch_norm_ends_with_the_mean_of_its_micro_batches(momentum: float | None, scale: float) -> None:
    norm = nn.BatchNorm1d(4, momentum=momentum)
    mean = following(norm)
    for step in range(4):
        batches = inputs(3, step, scale)
        expected = left_alone(norm, batches)
        run(mean, norm, batches)
        for name in ("running_mean", "running_var"):
            found = dict(norm.named_buffers())[name].double()
            # A variance that falls from 1 to 1e-12 in one step was counted in units that suit 1.
            torch.testing.assert_close(found, expected[name], rtol=6e-8, atol=2.0**-44 if step == 0 else 0)
        assert norm.num_batches_tracked == step + 1


@fewer(1 / 20)
@given(st.integers(1, 5), st.data())
def test_buffers_are_bitwise_the_same_for_every_division(micro_batches: int, data: st.DataObject) -> None:
    alone = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4), nn.BatchNorm1d(4))
    workers = data.draw(st.integers(2, 4))
    crew = [copy.deepcopy(alone) for _ in range(workers)]
    for step in range(3):
        batches = inputs(micro_batches, step, 10.0 ** data.draw(st.integers(-8, 8)))
        if data.draw(st.booleans()):
            batches[0][0, 1] = data.draw(st.sampled_from([math.inf, math.nan]))
        order = data.draw(st.permutations(range(micro_batches)))
        owners = [data.draw(st.integers(0, workers - 1)) for _ in order]
        shares = [
            [n for n, owner in zip(order, owners, strict=True) if owner == each] for each in range(workers)
        ]
        run_together(crew, batches, shares)
        run_together([alone], batches, [range(micro_batches)])
        assert all(bits_of(each) == bits_of(alone) for each in crew)


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.complex64),
        *(torch.complex128, torch.int64, torch.int32, torch.bool, torch.uint8),
    ],
)
@pytest.mark.filterwarnings("ignore:micro-batches have changed the integer")
def test_buffers_of_every_type_keep_it(dtype: torch.dtype) -> None:
    module = Counting(value=torch.zeros(3).to(dtype), counter=torch.tensor(2**40))
    mean = following(module)

    def body(module: Any, data: int) -> None:
        module.value.fill_(data)
        module.counter += 1

    for _ in range(2):
        run(mean, module, [1, 1, 1], body)
    assert module.value.dtype == dtype
    assert module.value.to(torch.complex64).tolist() == [1, 1, 1]
    assert module.counter == 2**40 + 2


@pytest.mark.parametrize("start", [2**53, 2**60 + 1, -(2**62) - 1, 2**62 + 1])
@pytest.mark.filterwarnings("ignore:micro-batches have changed the integer")
def test_integers_beyond_those_of_float64_stay_exact(start: int) -> None:
    module = Counting(value=torch.tensor([start, 5]))
    mean = following(module)

    def body(module: Any, data: int) -> None:
        module.value += data

    run(mean, module, [1, 1, 1], body)
    assert module.value.tolist() == [start + 1, 6]
    run(mean, module, [-7, 0, 2**50 + 1], body)
    assert module.value.tolist() == [start + 1 + (2**50 - 6) // 3, 6 + (2**50 - 6) // 3]


def test_an_integer_that_micro_batches_change_is_named_once() -> None:
    module = Counting(position=torch.zeros(1, dtype=torch.long), seen=torch.tensor(False))
    model = nn.ModuleList([module, nn.BatchNorm1d(4)])
    mean = following(model)

    def body(model: Any, data: torch.Tensor) -> None:
        model[0].position[0] += len(data)
        model[0].seen.fill_(True)
        model[1](data)

    with pytest.warns(UserWarning, match="integer buffer position of a Counting"):
        run(mean, model, inputs(2), body)
    run(mean, model, inputs(2, 1), body)  # here a warning would be an error


# What a buffer may go through.


def test_buffers_not_written_to_keep_identity_version_and_bits() -> None:
    module = Counting(table=torch.rand(5), empty=torch.zeros(0), phases=torch.ones(2, dtype=torch.complex64))
    before = [(id(buffer), buffer._version, buffer.tolist()) for buffer in module.buffers()]
    mean = following(module)
    for _ in range(2):
        run(mean, module, [1, 2], lambda module, data: None)
    assert [(id(buffer), buffer._version, buffer.tolist()) for buffer in module.buffers()] == before


def add_in_silence(module: Any, data: float | None) -> None:
    if data is not None:
        module.value.data += data


def test_writes_that_torch_does_not_count_are_averaged() -> None:
    module = Counting(value=torch.tensor([4.0]))
    mean = following(module)
    run(mean, module, [None, 2.0], add_in_silence)
    assert module.value.tolist() == [5.0]
    run(mean, module, [2.0, None, 4.0, None], add_in_silence)
    assert module.value.tolist() == [6.5]


def steps_of_two(*steps: tuple[Sequence[float | None], Sequence[int]]) -> list[nn.Module]:
    """Steps of two workers that write in silence; for each, its data, and which worker has which of them."""
    modules = [Counting(value=torch.tensor([4.0])) for _ in range(2)]
    means = [following(module) for module in modules]
    for data, owners in steps:
        for own, (mean, module) in enumerate(zip(means, modules, strict=True)):
            share = [number for number, owner in enumerate(owners) if owner == own]
            _run_share(mean, module, data, share, add_in_silence)
        finish_together(means)
    return modules


@pytest.mark.parametrize("owners", [(0, 0), (0, 1), (1, 0)])
def test_a_late_write_that_torch_does_not_count_is_refused_for_every_division(owners: Sequence[int]) -> None:
    with pytest.raises(edt_hvd.GradientError, match=r"buffer value of a Counting .* under torch\.no_grad"):
        steps_of_two(([None, None], (0, 1)), ([None, 2.0], owners))


@pytest.mark.parametrize("writes", [0, 1])
def test_a_late_write_is_refused_also_where_a_worker_has_just_joined(writes: int) -> None:
    modules = [Counting(value=torch.tensor([4.0])) for _ in range(2)]
    survivor, newcomer = (following(module) for module in modules)
    run(survivor, modules[0], [None, None], add_in_silence)
    for number, mean in enumerate((survivor, newcomer)):
        data = [2.0 if worker == writes else None for worker in range(2)]
        _run_share(mean, modules[number], data, [number], add_in_silence)
    with pytest.raises(edt_hvd.GradientError, match="for the first time after its first step"):
        finish_together([survivor, newcomer])


def test_a_late_write_in_a_step_of_one_micro_batch_is_averaged_and_known_to_all_workers() -> None:
    for module in steps_of_two(([None], (0,)), ([2.0], (0,)), ([None, 4.0], (0, 1)), ([2.0, None], (1, 0))):
        assert module.value.tolist() == [9.0]  # 4, 6, 8, 9


def test_a_buffer_that_is_replaced_is_averaged_and_stays_the_same_tensor() -> None:
    module = Counting(value=torch.tensor([1.0]))
    tensor = module.value
    mean = following(module)

    def body(module: Any, data: float) -> None:
        assert module.value.tolist() == start
        module.value = module.value + data

    for start in ([1.0], [3.0]):  # noqa: B007 - the body checks it
        run(mean, module, [1.0, 3.0], body)
    assert module.value is tensor
    assert tensor.tolist() == [5.0]


def test_a_cache_that_grows_is_left_as_it_was() -> None:
    module = Counting(cache=torch.zeros(2), dropped=torch.ones(1))
    mean = following(module)

    def body(module: Any, data: int) -> None:
        module.cache = torch.zeros(data)
        module.dropped = None

    run(mean, module, [4, 8], body)
    assert module.cache.shape == (2,)
    assert module.dropped.tolist() == [1.0]


def test_modules_and_buffers_used_twice_are_averaged_once() -> None:
    norm = nn.BatchNorm1d(4)
    model = nn.ModuleList([norm, nn.Sequential(norm)])
    other = Counting(shared=norm.running_mean)
    mean = following(model)
    mean.track(norm)
    mean.track(other)
    batches = inputs(2)
    expected = left_alone(norm, batches)
    run(mean, model, batches, lambda model, data: norm(data))  # type: ignore[arg-type]
    torch.testing.assert_close(norm.running_mean.double(), expected["running_mean"], rtol=6e-8, atol=0)
    assert other.shared is norm.running_mean


# In a loop over a loader.


def trained(loader: edt_hvd.ElasticDataLoader, model: nn.Module, leave: bool) -> None:
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    for step in loader:
        for (batch,) in step:
            step.backward(model(batch).square().mean())
            if leave:
                return
        optimizer.step()


def test_a_step_begun_anew_ends_as_if_it_had_not_been_left() -> None:
    dataset = torch.utils.data.TensorDataset(torch.cat(inputs(4)))
    models = []
    for leave in (True, False):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        loader = edt_hvd.ElasticDataLoader(dataset, 10, 5)
        if leave:
            trained(loader, model, leave=True)
        trained(loader, model, leave=False)
        models.append(model)
    assert bits_of(models[0]) == bits_of(models[1])


def test_what_a_restored_state_wrote_is_not_undone_when_its_step_is_left() -> None:
    norm = nn.BatchNorm1d(4)
    state = edt_hvd.TorchState(norm=norm)
    state.sync()
    norm.running_mean += 1  # between the last commit and the step
    for step in edt_hvd.ElasticDataLoader(torch.utils.data.TensorDataset(torch.cat(inputs(1))), 5, 5):
        for (batch,) in step:
            norm(batch)
            state.restore()
            break
        break
    assert norm.running_mean.tolist() == [0.0] * 4
