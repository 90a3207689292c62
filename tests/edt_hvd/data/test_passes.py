"""Several passes over a step."""

from collections.abc import Iterator
from itertools import chain, islice

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.data.loader import ElasticDataLoader
from places import Place, batches_of, numbers_loader


def passes_of(loader: ElasticDataLoader, count: int) -> Iterator[list[list[int]]]:
    """The samples of every pass over each step that is left of the epoch."""
    for step in loader:
        yield [list(chain(*step)) for _ in range(count)]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_worker_has_its_own_share_in_every_pass(place: Place, rank: int) -> None:
    place.rank, place.size = rank, 3
    expected = batches_of(numbers_loader(10, 5, 2))
    assert list(passes_of(numbers_loader(10, 5, 2), 2)) == [[samples] * 2 for samples in expected]


@pytest.mark.parametrize("micro_batch_size", [2, 4])
def test_a_step_is_not_unpacked_as_a_batch_would_be(place: Place, micro_batch_size: int) -> None:
    with pytest.raises(TypeError, match=r"for step in state\.loader: for inputs, targets in step"):
        for _inputs, _targets in numbers_loader(8, 4, micro_batch_size):
            pass
    with pytest.raises(TypeError, match="assigned to several names"):
        for _inputs, *_others in numbers_loader(8, 4, micro_batch_size):
            pass


def test_random_numbers_differ_between_passes_and_not_between_runs(place: Place) -> None:
    def drawn() -> list[float]:
        found = []
        for step in islice(numbers_loader(8, 4, 2), 1):
            for _ in range(3):
                found += [torch.rand(()).item() for _ in step]
                found.append(torch.rand(()).item())
        return found

    first = drawn()
    assert first == drawn()
    assert len(set(first)) == 9


def test_the_loss_is_that_of_the_last_pass(place: Place) -> None:
    loader = numbers_loader(4, 4, 2)
    for step in loader:
        for value in (3.0, 5.0):
            for _ in step:
                step.backward(torch.tensor(value, requires_grad=True) * 1)
            assert step.loss == value
        assert step.passes == 2
        assert loader.summary == (0, 1, 4, 5.0)


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_pass_that_is_left_ends_the_step(place: Place, earlier: int) -> None:
    loop = iter(numbers_loader(8, 4))
    step = next(loop)
    for _ in range(earlier):
        list(step)
    for _ in step:
        break
    with pytest.raises(RuntimeError, match="<step 0 of epoch 0> is passed over again after a loop"):
        list(step)
    with pytest.raises(RuntimeError, match="<step 0 of epoch 0> was left before its micro-batches"):
        next(loop)


def test_a_loop_in_the_loop_over_the_same_step_is_refused(place: Place) -> None:
    step = next(iter(numbers_loader()))
    for _ in step:
        with pytest.raises(RuntimeError, match="a loop over <step 0 of epoch 0> inside another one"):
            list(step)


def test_a_pass_after_the_commit_is_refused(place: Place) -> None:
    loader = numbers_loader()
    for step in loader:
        list(step)
        loader.note_commit()
        with pytest.raises(RuntimeError, match=r"another pass over <step 0 of epoch 0> after state.com"):
            list(step)
        break


# What optimizers get.


# Steps of several loaders.


def values(*numbers: float) -> ElasticDataLoader:
    """One sample a step; the gradient of `weight * sample` is the sample."""
    return ElasticDataLoader([torch.tensor(number) for number in numbers], 1, shuffle=False)


def run(weight: nn.Parameter, step: edt_hvd.Step) -> None:
    for sample in step:
        step.backward((weight * sample).sum())


@pytest.fixture(params=["exact", "ring"])
def trained(request: pytest.FixtureRequest, alone: None) -> tuple[nn.Parameter, torch.optim.SGD]:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    return weight, edt_hvd.DistributedOptimizer(optimizer, reduction=request.param)


Trained = tuple[nn.Parameter, torch.optim.SGD]


@pytest.mark.parametrize("zero_grad", [True, False])
@pytest.mark.parametrize("again", [1, 3])
def test_gradients_of_two_loaders_and_from_outside_add_up(
    trained: Trained, again: int, zero_grad: bool
) -> None:
    weight, optimizer = trained
    seen = []
    for first, second in zip(values(1.0, 2.0, 3.0), values(10.0, 20.0), strict=False):
        before = weight.item()
        if zero_grad:
            optimizer.zero_grad()
            (100 * weight).sum().backward()
        run(weight, first)
        for _ in range(again):
            run(weight, second)
        (1000 * weight).sum().backward()
        optimizer.step()
        seen.append(before - weight.item())
    outside = 1100 if zero_grad else 1000
    assert seen == [outside + 11, outside + 22]


@pytest.mark.filterwarnings("ignore:optimizer.step.. was not called")
def test_what_does_not_count_is_not_added_to(trained: Trained) -> None:
    weight, optimizer = trained
    steps, loader = iter(values(1.0, 2.0, 4.0, 8.0, 16.0)), values(0.0)
    run(weight, next(steps))
    optimizer.step()
    run(weight, next(steps))
    optimizer.zero_grad()
    run(weight, next(steps))
    loader.note_commit()
    run(weight, step := next(steps))
    assert weight.grad == 8.0
    (weight * float("inf")).sum().backward()
    for sample in (step := next(steps)):
        step.backward((weight * sample).sum(), scaler=torch.amp.GradScaler("cpu", init_scale=1.0))
    assert weight.grad == float("inf")
    for step in values(32.0):  # a scaler has left the step with inf out
        run(weight, step)
    assert weight.grad == 32.0
    assert weight.item() == -1.0


def test_a_pass_between_others_without_gradients_keeps_those_there_are(trained: Trained) -> None:
    weight, optimizer = trained
    for step in values(1.0):
        run(weight, step)
        for other in values(5.0):
            list(other)
        assert weight.grad == 1.0
        optimizer.step()


def test_gradients_from_outside_are_not_added_to_those_of_the_last_step(trained: Trained) -> None:
    weight, optimizer = trained
    steps = iter(values(1.0, 2.0, 3.0))
    run(weight, next(steps))
    optimizer.step()
    weight.sum().backward()
    step = next(steps)
    with pytest.raises(edt_hvd.GradientError, match=r"call optimizer\.zero_grad\(\) before it"):
        optimizer.step()
    with pytest.raises(edt_hvd.GradientError, match=r"call optimizer\.zero_grad\(\) before it"):
        run(weight, step)
    steps = iter(values(2.0))
    optimizer.zero_grad()  # they were for something else
    run(weight, next(steps))
    assert weight.grad == 2.0


def test_passes_over_steps_that_cannot_be_told_apart_are_refused(trained: Trained) -> None:
    weight, _ = trained
    first, second = next(loop := iter(values(1.0))), next(other := iter(values(2.0)))
    run(weight, first)
    for _ in second:
        with pytest.raises(RuntimeError, match=r"inside the loop over .* of another loader, as by zip\(\)"):
            run(weight, first)
    run(weight, second)
    with pytest.raises(edt_hvd.GradientError, match="another pass over a step after one over another loader"):
        run(weight, first)
    del loop, other
