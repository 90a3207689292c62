"""The exact reducer; several workers are as many reducers, whose integers and reports are added by hand."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from edt_hvd.errors import GradientError, NonFiniteGradientWarning, StateError
from edt_hvd.reduction.fixed_point.grid import FIRST_PASSES, PACE, IntegerBits
from edt_hvd.reduction.gradients.bucket import BUCKET_BYTES
from edt_hvd.reduction.gradients.exact import ExactReducer
from examples import fewer

pytestmark = pytest.mark.usefixtures("alone")

MicroBatch = Sequence[torch.Tensor | None]
"""A gradient, or none, for every parameter."""


class Worker:
    """A reducer with parameters of its own."""

    def __init__(
        self, like: Sequence[torch.Tensor], bits: IntegerBits = 64, bucket_bytes: int = BUCKET_BYTES
    ) -> None:
        self.parameters = [nn.Parameter(torch.zeros_like(each)) for each in like]
        self.reducer = ExactReducer(
            lambda: self.parameters,
            bucket_bytes,
            bits,
            lambda: [f"layer.{i}" for i in range(len(self.parameters))],
        )

    def begin(self, micro_batches: int) -> None:
        self.reducer.expire()  # an optimizer has stepped
        self.reducer.begin_pass(micro_batches)

    def run(self, micro_batch: MicroBatch, weight: float, last: bool = False, scaled: bool = False) -> None:
        self.reducer.before_backward(weight, last, scaled)
        for parameter, gradient in zip(self.parameters, micro_batch, strict=True):
            if gradient is not None:
                torch.autograd.backward([parameter], [gradient])
        self.reducer.after_backward()
        self.reducer.after_micro_batch(weight)

    def step(self, micro_batches: Sequence[MicroBatch], scaled: bool = False) -> list[torch.Tensor | None]:
        """A step of this worker alone; returns the gradients."""
        self.begin(len(micro_batches))
        for number, each in enumerate(micro_batches):
            self.run(each, 1 / len(micro_batches), number == len(micro_batches) - 1, scaled)
        self.reducer.finish_pass(self.reducer.report()[None])
        return self.gradients

    @property
    def gradients(self) -> list[torch.Tensor | None]:
        return [None if p.grad is None else p.grad.detach().clone() for p in self.parameters]

    @property
    def exponents(self) -> list[int]:
        return self.reducer.state_dict()["exponents"].tolist()  # type: ignore[no-any-return]


def step_together(
    workers: Sequence[Worker],
    micro_batches: Sequence[MicroBatch],
    weights: Sequence[float],
    shares: Sequence[int],
    divisor: float | None = None,
) -> list[torch.Tensor | None]:
    """A step of several workers, each with the micro-batches that `shares` gives it; worker 0's gradients."""
    for worker in workers:
        worker.begin(len(micro_batches))
    for number, (each, weight) in enumerate(zip(micro_batches, weights, strict=True)):
        mine = [n for n, share in enumerate(shares) if share == shares[number]]
        workers[shares[number]].run(each, weight, last=number == mine[-1])
    reports = np.stack([worker.reducer.report() for worker in workers])
    _reduce([worker.reducer for worker in workers], reports)
    workers[0].reducer.finish_pass(reports, divisor)
    for worker in workers[1:]:
        worker.reducer.reset()
        worker.reducer.load_state_dict(workers[0].reducer.state_dict())
    return workers[0].gradients


def _reduce(reducers: Sequence[ExactReducer], reports: Any) -> None:
    """Add everybody's integers to the first reducer's."""
    count = len(reducers[0]._trainable)
    exponents = reports[:, 1 : count + 1].max(axis=0).tolist()
    special = reports[:, count + 1 : 2 * count + 1].max(axis=0).tolist()
    for buckets in zip(*(reducer._buckets for reducer in reducers), strict=True):
        for bucket in buckets:
            bucket._prepare()
        for bucket in buckets[1:]:
            if bucket.late is not None:
                buckets[0].late_total().add_(bucket.late)
    for number, sums in enumerate(
        zip(*(dict(reducer._sums()).values() for reducer in reducers), strict=True)
    ):
        levels = range(1, sums[0].grid.levels(exponents[number]) + 1)
        parts = [
            [each.total, *map(each.level, levels), *([each.specials()] if special[number] else [])]
            for each in sums
        ]
        for other in parts[1:]:
            for mine, theirs in zip(parts[0], other, strict=True):
                mine.add_(theirs)


def bits_of(gradients: Sequence[torch.Tensor | None]) -> list[bytes | None]:
    return [None if g is None else g.reshape(-1).view(torch.uint8).numpy().tobytes() for g in gradients]


def full(value: float, size: int = 2, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((size,), value, dtype=dtype)


# The same bits for every number of workers.


@st.composite
def trainings(draw: st.DrawFn) -> dict[str, Any]:
    """Three steps' gradients of three parameters, and who computes what in each."""
    real = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
    dtype = draw(st.sampled_from([*real, torch.complex64, torch.complex128]))
    like = [torch.zeros(3, dtype=dtype), torch.zeros((), dtype=dtype), torch.zeros(2, 0, dtype=dtype)]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    special = draw(st.booleans())
    steps = []
    for _ in range(3):
        size = 2.0 ** draw(st.sampled_from([-130, -40, -14, -3, 0, 5, 14, 60, 120]))
        batch = []
        for _ in range(draw(st.integers(1, 6))):
            wide = torch.complex128 if dtype.is_complex else torch.float64
            drawn = [torch.randn(p.shape, generator=generator, dtype=wide) * size for p in like]
            gradients = [each.to(dtype) for each in drawn]
            if special:
                gradients[0][draw(st.integers(0, 2))] = draw(st.sampled_from([math.inf, math.nan, 1.0]))
            present = draw(st.lists(st.booleans(), min_size=3, max_size=3))
            batch.append([g if there else None for g, there in zip(gradients, present, strict=True)])
        samples = [draw(st.integers(1, 4)) for _ in batch]
        divisor = draw(st.none() | st.just(float(sum(samples))))
        weights = samples if divisor else [each / sum(samples) for each in samples]
        workers = draw(st.integers(1, 4))
        shares = [draw(st.integers(0, workers - 1)) for _ in batch]
        steps.append((batch, weights, workers, shares, divisor))
    return {"like": like, "bits": draw(st.sampled_from([32, 64])), "steps": steps}


@pytest.mark.filterwarnings("ignore::edt_hvd.errors.NonFiniteGradientWarning")
@fewer(3 / 10)
@given(trainings())
def test_gradients_and_history_are_bitwise_the_same_for_every_division(training: dict[str, Any]) -> None:
    alone = Worker(training["like"], training["bits"])
    crew = [Worker(training["like"], training["bits"], bucket_bytes=1) for _ in range(4)]
    for batch, weights, workers, shares, divisor in training["steps"]:
        found = step_together(crew[:workers], batch, weights, shares, divisor)
        expected = step_together([alone], batch, weights, [0] * len(batch), divisor)
        assert bits_of(found) == bits_of(expected)
        assert crew[0].exponents == alone.exponents
        for newcomer in crew[1:]:
            newcomer.reducer.load_state_dict(crew[0].reducer.state_dict())


@pytest.mark.parametrize("bits", [32, 64])
def test_newcomers_without_the_history_are_noticed(bits: IntegerBits) -> None:
    old, newcomer = Worker([full(0)], bits), Worker([full(0)], bits)
    old.step([[full(1.0)]])
    with pytest.raises(GradientError, match="put the optimizer into the"):
        step_together([old, newcomer], [[full(1.0)], [full(1.0)]], [0.5, 0.5], [0, 1])


# The range.


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("growth", [30, 100, -30, -100])
def test_a_gradient_that_grows_or_shrinks_suddenly_loses_nothing_when_it_grows(
    bits: IntegerBits, growth: int
) -> None:
    worker = Worker([full(0)], bits)
    worker.step([[full(1.5)], [full(1.25)]])
    assert worker.exponents == [0], "weighted by half, 1.5 is below 1"
    values = torch.tensor([1.0 + 2.0**-23, 1 / 3]) * 2.0**growth
    (found,) = worker.step([[values], [values]])
    assert found is not None
    if growth > 0:
        assert torch.equal(found, values)
        assert worker.exponents == [PACE[bits][0]]
    else:
        assert (found - values).abs().max() <= 2.0 ** (-20 if bits == 32 else -44)
        assert worker.exponents == [-PACE[bits][1]]


@pytest.mark.parametrize("bits", [32, 64])
def test_the_history_follows_a_gradient_that_has_shrunk_below_the_grids_unit(bits: IntegerBits) -> None:
    worker = Worker([full(0)], bits)
    worker.step([[full(1.0)]])
    for step in range(120):
        (found,) = worker.step([[full(0.75 * 2.0**-60)]])
        expected = max(1 - (step + 1) * PACE[bits][1], -60)
        assert worker.exponents == [expected], "also where the addend is between half a unit and one"
    assert found.tolist() == [0.75 * 2.0**-60] * 2


def test_zero_gradients_are_gradients_and_leave_the_history_alone() -> None:
    worker = Worker([full(0)])
    for _ in range(2):
        (found,) = worker.step([[full(0.0)]])
        assert found.tolist() == [0.0, 0.0]
    before = worker.exponents
    worker.step([[full(4.0)]])
    assert worker.exponents == [3] != before
    worker.step([[full(0.0)]])
    assert worker.exponents == [3]


def test_parameters_without_gradient_keep_none_and_their_history() -> None:
    worker = Worker([full(0), full(0), full(0)])
    worker.step([[full(1.0), full(8.0), None]])
    first = worker.exponents
    found = worker.step([[full(1.0), None, None], [full(3.0), None, None]])
    assert [None if each is None else each.tolist() for each in found] == [[2.0, 2.0], None, None]
    assert worker.exponents == [1, *first[1:]]
    found = worker.step([[None, full(1.0), None], [None, None, None]])
    assert [None if each is None else each.tolist() for each in found] == [None, [0.5, 0.5], None]


@pytest.mark.parametrize("passes", [1, 3, FIRST_PASSES])
def test_several_gradients_a_micro_batch_are_expected_once_seen(passes: int) -> None:
    worker = Worker([full(0)], 32)
    for _ in range(3):
        worker.begin(micro_batches=2)
        for _ in range(2 * passes):
            worker.run([full(1.0)], 0.5)
        worker.reducer.finish_pass(worker.reducer.report()[None])
        assert worker.gradients[0].tolist() == [passes, passes]
    assert worker.reducer.state_dict()["passes"] == passes


def test_more_gradients_than_the_integers_have_room_for_are_refused() -> None:
    worker = Worker([full(0)], 32)
    worker.step([[full(1.0)]])
    worker.begin(micro_batches=1)
    for _ in range(64):
        worker.run([full(8.0)], 1.0)
    with pytest.raises(GradientError, match=r"64 gradients of layer\.0 in a step of 1 micro-batches"):
        worker.reducer.finish_pass(worker.reducer.report()[None])


# Inf and nan.


def test_inf_and_nan_come_out_where_torch_has_them_and_are_reported_once() -> None:
    worker = Worker([full(0), full(0), full(0)])
    good = [torch.tensor([1.0, 3.0])] * 3
    worker.step([good, good])
    before = worker.exponents
    bad = [torch.tensor([1.0, math.nan]), torch.tensor([-math.inf, 1.0]), good[0]]
    with pytest.warns(
        NonFiniteGradientWarning, match=r"layer\.0 \(nan\), layer\.1 \(inf\); as in torch"
    ) as caught:
        found = worker.step([good, bad])
    assert len(caught) == 1
    assert str(found) == str([torch.tensor([1.0, math.nan]), torch.tensor([-math.inf, 2.0]), good[0]])
    worker.step([bad, good])  # a second time without a warning
    assert worker.exponents == [max(seen - 1, 1) for seen in before]
    assert bits_of(worker.step([good, good])) == bits_of(good)
    with pytest.warns(NonFiniteGradientWarning, match="layer"):
        worker.step([bad, bad])


def test_a_scaler_hears_of_inf_from_the_gradients_alone() -> None:
    worker = Worker([full(0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = worker.step([[full(math.inf)]], scaled=True)
    assert found.tolist() == [math.inf, math.inf]


# Gradients as autograd hands them over.


def test_one_tensor_handed_to_two_parameters_is_taken_twice() -> None:
    worker = Worker([full(0), full(0)])
    shared = full(3.0)
    for _ in range(3):
        assert bits_of(worker.step([[shared, shared], [shared, shared]])) == bits_of([shared, shared])
    assert shared.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_any_layout(dtype: torch.dtype) -> None:
    like = torch.zeros(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(-9, 9, like.shape, generator=generator).to(dtype)
    layouts = [
        values.to(memory_format=torch.channels_last),
        values.transpose(0, 3).contiguous().transpose(0, 3),
        torch.ones((), dtype=dtype).expand(like.shape),
    ]
    worker = Worker([like])
    (found,) = worker.step([[each] for each in layouts])
    torch.testing.assert_close(found, (2 * values + 1) / 3, rtol=1e-6, atol=0)
    (found,) = worker.step([[layouts[0]], [layouts[1]]])
    assert torch.equal(found, values)


def test_gradients_are_not_those_of_the_step_before() -> None:
    worker = Worker([full(0), full(0)], bucket_bytes=1)
    worker.step([[full(5.0), full(7.0)]])
    worker.begin(micro_batches=1)
    worker.run([full(1.0), None], 1.0)  # this step is left, as after an error, and begun anew
    assert bits_of(worker.step([[full(2.0), None]])) == bits_of([full(2.0), None])


# The history, as a state.


def test_a_loaded_history_goes_on_as_the_saved_one() -> None:
    first, second = Worker([full(0), full(0), full(0)], 32), Worker([full(0), full(0), full(0)], 32)
    first.step([[full(1 / 3), full(-1e-20), None]])
    second.step([[full(7.0), full(7.0), full(7.0)]])
    second.reducer.load_state_dict(first.reducer.state_dict())
    values = [torch.tensor([0.1, 0.7]), torch.tensor([1e-21, 1e-22]), None]
    assert bits_of(second.step([values] * 3)) == bits_of(first.step([values] * 3))
    assert second.exponents == first.exponents
    with pytest.raises(StateError, match="exponents are of 3 parameters, the optimizer has 1"):
        Worker([full(0)]).reducer.load_state_dict(first.reducer.state_dict())
