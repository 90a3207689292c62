"""The distributed optimizer and its reducer in a world of one; several workers are in tests/system."""

import gc
import math
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

import edt_hvd
from edt_hvd.errors import GradientError
from edt_hvd.reduction import participants
from edt_hvd.reduction.gradients.bucket import BUCKET_BYTES
from edt_hvd.reduction.gradients.exact import ExactReducer
from edt_hvd.reduction.gradients.floating_point import FloatReducer
from edt_hvd.reduction.gradients.reducer import BucketReducer

pytestmark = pytest.mark.usefixtures("alone")


def data(samples: int) -> list[tuple[torch.Tensor, int]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(6, generator=generator), i % 3) for i in range(samples)]


def net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def single(value: float = 0.0, **options: Any) -> tuple[nn.Parameter, torch.optim.Optimizer]:
    """A parameter, and its distributed optimizer, which subtracts the gradient."""
    weight = nn.Parameter(torch.full((1,), value))
    return weight, edt_hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), **options)


EXACT: dict[str, Any] = {"reduction": "exact", "integer_bits": 64}
EXACT_32: dict[str, Any] = {"reduction": "exact", "integer_bits": 32}
RING: dict[str, Any] = {"reduction": "ring"}
every_reduction = pytest.mark.parametrize(
    "options", [EXACT, EXACT_32, RING], ids=["exact", "exact32", "ring"]
)


@every_reduction
@pytest.mark.filterwarnings("ignore:optimizer.step.. was not called")
def test_gradients_after_a_step_are_those_of_the_whole_batch(options: dict[str, Any]) -> None:
    model, whole = net(), net()
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model, **options)
    dataset = data(10)
    loader = edt_hvd.ElasticDataLoader(dataset, 10, micro_batch_size=3)
    for step in loader:
        for inputs, targets in step:
            step.backward(cross_entropy(model(inputs), targets))
    inputs = torch.stack([x for x, _ in dataset])
    loss = cross_entropy(whole(inputs), torch.tensor([y for _, y in dataset]))
    loss.backward()
    assert step.loss == pytest.approx(loss.item(), rel=1e-6)
    for ours, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    optimizer.step()


def gradients(options: dict[str, Any], is_collected: bool) -> list[torch.Tensor | float | None]:
    """Of a step with three mini-batches, the last of them short; also buffers and the loss."""
    model = nn.Sequential(net(), nn.BatchNorm1d(3))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model, **options)
    for step in edt_hvd.ElasticDataLoader(data(20), 20, 8, seed=3):
        for inputs, targets in step:

            def loss(inputs: torch.Tensor = inputs, targets: torch.Tensor = targets) -> torch.Tensor:
                return cross_entropy(model(inputs), targets)

            def body() -> torch.Tensor:
                assert all(parameter.grad is None for parameter in model.parameters())
                for part in (found := loss()) * 0.5, found * 0.5:
                    part.backward(retain_graph=True)
                nn.utils.clip_grad_norm_(model.parameters(), 1e9)
                return found

            step.collect(body) if is_collected else step.backward(loss())
    optimizer.step()
    return [*(p.grad for p in model.parameters()), *model.buffers(), step.loss]


@every_reduction
@pytest.mark.filterwarnings("ignore:optimizer.step.. was not called")
def test_gradients_of_a_body_are_collected_as_those_of_a_loss(options: dict[str, Any]) -> None:
    found, expected = (gradients(options, is_collected) for is_collected in (True, False))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_what_a_body_must_not_do_is_refused() -> None:
    weight, optimizer = single()
    step = next(iter(edt_hvd.ElasticDataLoader([1.0, 2.0], 2, 1)))

    def stepping() -> torch.Tensor:
        weight.sum().backward()
        optimizer.step()
        return weight.sum()

    with pytest.raises(RuntimeError, match="no micro-batch outside the loop"):
        step.collect(stepping)
    for _ in step:
        with pytest.raises(GradientError, match=r"optimizer\.step\(\) inside the loop over a step"):
            step.collect(stepping)
        break


@every_reduction
@pytest.mark.parametrize("scale", [1, 1e12])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_losses_that_are_means_over_tokens_are_weighted_by_them(
    options: dict[str, Any], scale: float, is_scaled: bool
) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0) if is_scaled else None
    weight, optimizer = single(1.0, **options)
    tokens = [[1.0], [2.0, 3.0], [], [4.0, 5.0, 6.0]]
    for step in edt_hvd.ElasticDataLoader(
        tokens, 4, 1, shuffle=False, collate_fn=lambda s: torch.tensor(s[0])
    ):
        for found in step:  # the mean over nothing is nan
            step.backward((weight * found).mean(), weight=len(found) * scale, scaler=scaler)
        assert step.loss == 3.5
        if scaler is not None:
            scaler.unscale_(optimizer)
        assert weight.grad.item() == pytest.approx(3.5, rel=1e-6)
        optimizer.step()
        for found in step:
            step.backward((weight * found).sum() * math.nan, weight=0)
        assert math.isnan(step.loss)
    assert weight.item() == pytest.approx(-2.5)


def test_weights_that_mean_nothing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participants, "_registered", [])
    parameter = nn.Parameter(torch.ones(1))
    loss = (parameter * 2).sum()
    steps = iter(edt_hvd.ElasticDataLoader([torch.ones(1)] * 8, 4, 2))
    for _ in (step := next(steps)):
        with pytest.raises(
            RuntimeError, match=r"weight=1\.0\) without a DistributedOptimizer, which divides"
        ):
            step.backward(loss, weight=1)
    edt_hvd.DistributedOptimizer(optimizer := torch.optim.SGD([parameter], lr=1.0))
    weights: list[float | None] = [3, None]

    def mix(step: edt_hvd.Step) -> None:
        for _ in step:
            for wrong in (-1, math.nan, math.inf):
                with pytest.raises(ValueError, match=rf"weight={float(wrong)}\): give the number of items"):
                    step.backward(loss, weight=wrong)
            step.backward((parameter * 2).sum(), weight=weights[0])
            with pytest.raises(GradientError, match=r"micro-batch, with (no )?weight.* and (no )?weight"):
                step.backward(loss, weight=weights[1])
            weights.reverse()

    with pytest.raises(GradientError, match="a weight for some micro-batches of a step and none for others"):
        mix(next(steps))
    del optimizer


def test_the_optimizer_stays_itself() -> None:
    model = net()
    plain = torch.optim.AdamW(model.parameters())
    assert edt_hvd.DistributedOptimizer(plain, model) is plain
    torch.optim.lr_scheduler.StepLR(plain, 1)
    assert "_edt_reducer" not in plain.state_dict()


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_zero_grad_anywhere_in_the_loop_does_no_harm(set_to_none: bool, inside: bool) -> None:
    weight, optimizer = single()
    for step in edt_hvd.ElasticDataLoader([torch.ones(1)] * 8, 4, micro_batch_size=1):
        if not inside:
            optimizer.zero_grad(set_to_none=set_to_none)
        for inputs in step:
            if inside and set_to_none:
                optimizer.zero_grad(set_to_none=True)
            step.backward((weight * inputs).mean())
        optimizer.step()
    assert weight.item() == pytest.approx(-2.0)


def test_parameters_added_or_frozen_later_are_followed() -> None:
    first, second = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD([first], lr=1.0))
    optimizer.add_param_group({"params": [second]})
    for step in edt_hvd.ElasticDataLoader([torch.ones(1)] * 4, 2):
        for inputs in step:
            step.backward(((first + second) * inputs).mean())
        optimizer.step()
        first.requires_grad_(False)
    assert (first.item(), second.item()) == (-1.0, -2.0)


def test_gradients_that_the_micro_batch_loop_sets_by_itself_are_refused() -> None:
    weight, optimizer = single()

    loader = edt_hvd.ElasticDataLoader([torch.ones(1)] * 4, 4, 2)
    micro_batches = iter(next(iter(loader)))
    for inputs in (next(micro_batches), next(micro_batches)):
        (weight.grad,) = torch.autograd.grad((weight * inputs).sum(), [weight])
    with pytest.raises(GradientError, match=r"has set \.grad of 1 parameters"):
        next(micro_batches)
    assert loader.position == 0, "a step whose reduction fails is not done"
    del optimizer


def reducers(weight: nn.Parameter) -> list[BucketReducer[Any]]:
    return [
        FloatReducer(lambda: [weight]),
        ExactReducer(lambda: [weight], BUCKET_BYTES, 64, lambda: ["weight"]),
    ]


def run_in_parts(weight: nn.Parameter, repeats: int) -> None:
    """A backward pass in which a reentrant checkpoint adds to one parameter's gradient again and again."""
    value = torch.ones(1, requires_grad=True)
    for _ in range(repeats):
        value = checkpoint(lambda x: x + weight, value, use_reentrant=True)
    value.sum().backward()


@pytest.mark.parametrize("kind", [0, 1], ids=["ring", "exact"])
def test_a_part_of_a_gradient_that_comes_after_the_launch_is_reduced_too(kind: int) -> None:
    weight = nn.Parameter(torch.zeros(1))
    own = reducers(weight)[kind]
    for repeats in (1, 2):
        own.expire()
        own.begin_pass(micro_batches=1)
        own.before_backward(1.0, last=True, scaled=False)
        run_in_parts(weight, repeats)
        own.after_backward()
        own.finish_pass(own.report()[None])
        assert weight.grad.item() == repeats


def test_a_default_device_and_type_of_the_script_are_left_to_it() -> None:
    weight, optimizer = single()
    state = edt_hvd.TorchState(model=nn.ParameterList([weight]), optimizer=optimizer)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            state.sync()
            for step in edt_hvd.ElasticDataLoader([1.0, 3.0], 2, 1, collate_fn=lambda found: found[0]):
                for value in step:
                    step.backward((weight * value).sum())
                optimizer.step()
                state.commit()
            assert edt_hvd.average(step.loss) == 0
    finally:
        torch.set_default_dtype(torch.float32)
    assert (weight.item(), weight.grad is not None and weight.grad.dtype) == (-2, torch.float32)


class Spectral(nn.Module):
    """Complex parameters among real ones, and tables made when they are first needed."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = nn.Parameter(torch.ones(6, dtype=torch.complex64) * (1 + 1j))
        self.norm = nn.BatchNorm1d(6)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "table"):
            self.register_buffer("table", torch.ones(6), persistent=False)
        turned = torch.fft.fft(inputs + self.table) * self.turns
        return self.norm(turned.real) + turned.imag  # type: ignore[no-any-return]


@every_reduction
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_complex_parameters_train_as_in_torch_also_after_a_validation(
    options: dict[str, Any], mode: Any
) -> None:
    torch.manual_seed(0)
    model, plain = Spectral(), Spectral()
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.AdamW(model.parameters()), model, **options)
    other = torch.optim.AdamW(plain.parameters())
    loader = edt_hvd.ElasticDataLoader([x for x, _ in data(12)], 4, 2, shuffle=False)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer)
    state.sync()
    model.eval()
    with mode():
        for step in edt_hvd.ElasticDataLoader([x for x, _ in data(4)], 4, 2):
            for inputs in step:
                model(inputs)
    model.train()
    for step in loader:
        for inputs in step:
            step.backward(model(inputs).square().mean())
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        state.commit()
    state.restore()
    for inputs in torch.stack([x for x, _ in data(12)]).split(4):
        for part in inputs.split(2):
            (plain(part).square().mean() / 2).backward()
        nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
        other.step()
        other.zero_grad()
    torch.testing.assert_close(model.turns, plain.turns)
    assert model.turns.grad is not None


@every_reduction
def test_gradients_of_a_type_that_cannot_be_summed_are_refused(options: dict[str, Any]) -> None:
    weight = nn.Parameter(torch.zeros(2, dtype=torch.float8_e4m3fn))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.1), **options)
    with pytest.raises(
        GradientError, match=r"float8_e4m3fn and shape \[2\] is trainable.*convert it in the f"
    ):
        list(next(iter(edt_hvd.ElasticDataLoader([torch.ones(1)] * 4, 4, 2))))
    del optimizer


def test_an_optimizer_is_distributed_once_and_with_a_known_reduction() -> None:
    model = net()
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(ValueError, match="distributed already"):
        edt_hvd.DistributedOptimizer(optimizer)
    with pytest.raises(ValueError, match="reduction='tree' is unknown; choose one of 'exact', 'ring'"):
        edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), reduction="tree")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="integer_bits=16 is not possible; choose one of 32, 64"):
        edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), integer_bits=16)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="4 of 4 parameters in the optimizer's group 0"):
        edt_hvd.DistributedOptimizer(torch.optim.SGD(net().parameters(), lr=0.1), model)


@every_reduction
def test_a_parameter_of_several_optimizers_is_trained_by_each(options: dict[str, Any]) -> None:
    """As in torch: a second phase over a model whose first optimizer is kept, or two that step in turn."""

    def trained(is_distributed: bool) -> list[float]:
        shared, first, second = (nn.Parameter(torch.full((1,), float(n))) for n in (1, 2, 3))
        optimizers = [torch.optim.SGD([shared, each], lr=0.1, momentum=0.5) for each in (first, second)]
        if is_distributed:
            for optimizer in optimizers:
                edt_hvd.DistributedOptimizer(optimizer, **options)
        steps = edt_hvd.ElasticDataLoader([torch.ones(1)] * 6, 1) if is_distributed else range(6)
        for number, step in enumerate(steps):
            for optimizer in optimizers:
                optimizer.zero_grad()
            if isinstance(step, edt_hvd.Step):
                for inputs in step:
                    step.backward((shared * (first + second) * inputs).mean())
            else:
                (shared * (first + second)).mean().backward()
            if number in (0, 1, 4):
                optimizers[0].step()
            if number != 0:
                optimizers[1].step()
        return [each.item() for each in (shared, first, second)]

    assert trained(is_distributed=True) == pytest.approx(trained(is_distributed=False), rel=1e-6)


@every_reduction
def test_a_parameter_goes_back_to_the_optimizer_that_is_left(options: dict[str, Any]) -> None:
    weight, other = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.ones(1))
    first = edt_hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), **options)
    second: torch.optim.Optimizer | None = None
    seen = []
    for step in edt_hvd.ElasticDataLoader([torch.ones(1)] * 12, 4, 2):
        if step.index == 1:
            second = edt_hvd.DistributedOptimizer(torch.optim.SGD([weight, other], lr=10.0), **options)
        for inputs in step:
            step.backward(((weight + other) * inputs).mean())
        (second or first).step()
        second = None
        seen.append(weight.item())
    assert seen == [-1.0, -11.0, -12.0]


def test_a_scaler_skips_the_step_and_the_next_one_is_right() -> None:
    weight, optimizer = single()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    values = [1.0, 1.0, 1.0, math.inf, 3.0, 5.0]
    seen = []
    for step in edt_hvd.ElasticDataLoader(torch.tensor(values), 2, 1, shuffle=False):
        for inputs in step:
            step.backward((weight * inputs).sum(), scaler=scaler)
        scaler.step(optimizer)
        scaler.update()
        seen.append((weight.item(), scaler.get_scale()))
    assert seen == [(-1.0, 8.0), (-1.0, 4.0), (-5.0, 4.0)]


def test_reducers_go_with_their_optimizers() -> None:
    model = net()
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, scheduler=scheduler)
    own = weakref.ref(optimizer._edt_reducer)  # type: ignore[attr-defined]
    assert own() in participants.active()
    gc.disable()  # workers collect at different times, and all must have the same reducers
    try:
        del optimizer, scheduler, state
        assert own() is None
    finally:
        gc.enable()


def test_an_optimizer_that_replaces_another_reduces_under_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participants, "_registered", [])
    weight = nn.Parameter(torch.ones(1))
    for _ in range(2):  # a newcomer makes the second alone
        optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.1))
        participants.collect_stale()
        own = optimizer._edt_reducer  # type: ignore[attr-defined]
        own.begin_pass(1)
        assert [bucket.name for bucket in own._buckets] == ["edt.0.bucket.0"]
        assert next(iter(own.describe())) == "distributed optimizer 1"
