"""The distributed optimizer: an ordinary torch optimizer whose gradients are those of the whole batch."""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import torch

from edt_hvd.reduction import buffers, participants
from edt_hvd.reduction.comparison import Description, form_of, text_of
from edt_hvd.reduction.compilation import compile_by_shape
from edt_hvd.reduction.fixed_point.grid import IntegerBits
from edt_hvd.reduction.gradients.bucket import BUCKET_BYTES
from edt_hvd.reduction.gradients.exact import ExactReducer
from edt_hvd.reduction.gradients.floating_point import FloatReducer
from edt_hvd.reduction.gradients.reducer import reducers_of

OptimizerT = TypeVar("OptimizerT", bound=torch.optim.Optimizer)
Reduction = Literal["exact", "ring"]


def DistributedOptimizer(  # noqa: N802 - the name Horovod's users know
    optimizer: OptimizerT,
    model: torch.nn.Module | None = None,
    *,
    reduction: Reduction = "exact",
    integer_bits: IntegerBits = 64,
    bucket_bytes: int = BUCKET_BYTES,
) -> OptimizerT:
    """Make `optimizer` step on gradients that are reduced over all workers.

    In a loop over an `ElasticDataLoader` the gradients are complete when the loop over a step ends. So
    clipping, `GradScaler` and `optimizer.step()` work as in one process. Inside the loop every ``.grad`` is
    None. In any other loop, `optimizer.step()` averages the gradients over the workers, as Horovod's
    optimizer does. A parameter may belong to several distributed optimizers, as in torch. Each of them steps
    on the same gradient.

    Args:
        optimizer: any torch optimizer; the same object is returned.
        model: the model that all parameters of the optimizer belong to. If given, messages use its parameter
            names, and its buffers (batch norm) are averaged over the micro-batches of a step.
        reduction: "exact", a sum in fixed point that is bitwise the same for every number of workers; or
            "ring", a sum in the gradients' own type by Horovod's ring-allreduce.
        integer_bits: size of the integers that "exact" reduces. 32 bits halve the traffic, to that of float32
            gradients. Their rounding errors are about those of a float32 sum (few micro-batches, elements of
            similar size) or far larger; those of 64 bits are smaller (docs/explanation/exact.md).
        bucket_bytes: approximate size of one all-reduce; gradients are combined up to it.

    Returns:
        `optimizer` itself. Schedulers, scalers, hooks and `state_dict` work as before.

    Raises:
        ValueError: an unknown reduction or number of bits, an optimizer that is already distributed, or a
            parameter of the optimizer that is not in `model`.
    """
    if reduction not in get_args(Reduction):
        raise ValueError(f"reduction={reduction!r} is unknown; choose one of {_listed(Reduction)}")
    if integer_bits not in get_args(IntegerBits):
        raise ValueError(
            f"integer_bits={integer_bits!r} is not possible; choose one of {_listed(IntegerBits)}"
        )
    if reducer_of(optimizer) is not None:
        raise ValueError("this optimizer is distributed already; call DistributedOptimizer once on it")
    if model is not None:
        _check_parameters(optimizer, model.parameters())
        buffers.track(model)

    # Nothing here keeps the optimizer alive: a dropped one goes at once, with its reducer, on all workers.
    alive = weakref.ref(optimizer)

    def groups() -> list[dict[str, Any]]:
        held = alive()
        return held.param_groups if held is not None else []

    def parameters() -> list[torch.nn.Parameter]:
        return [parameter for group in groups() for parameter in group["params"]]

    def names() -> list[str]:
        named = {p: name for name, p in model.named_parameters()} if model is not None else {}
        return [
            named.get(parameter, f"parameter {number} of group {group_number}")
            for group_number, group in enumerate(groups())
            for number, parameter in enumerate(group["params"])
        ]

    def description(place: int) -> Description:
        held = alive()
        what = f"distributed optimizer {place + 1}"
        kind = f"{type(held).__name__}, reduction={reduction!r}, {integer_bits} bits, {bucket_bytes=}"
        return {what: kind} | _described(what, groups())

    own: ExactReducer | FloatReducer
    if reduction == "exact":
        own = ExactReducer(parameters, bucket_bytes, integer_bits, names)
        compile_by_shape()
    else:
        own = FloatReducer(parameters, bucket_bytes)
    own.description = description
    participants.register(own)
    optimizer._edt_reducer = own  # type: ignore[attr-defined]

    _hook_steps(optimizer, parameters)
    return optimizer


def _hook_steps(optimizer: torch.optim.Optimizer, parameters: Callable[[], list[torch.nn.Parameter]]) -> None:
    """Tell the reducers of its parameters when it steps."""

    def before(*_: Any) -> None:
        for each in reducers_of(parameters()):
            each.before_optimizer_step()

    def after(*_: Any) -> None:
        for each in reducers_of(parameters()):
            each.expire()

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


def reducer_of(value: Any) -> ExactReducer | FloatReducer | None:
    """The reducer of a distributed optimizer; None for anything else."""
    return getattr(value, "_edt_reducer", None) if isinstance(value, torch.optim.Optimizer) else None


def reduction_of(value: Any) -> Reduction | None:
    """How a distributed optimizer's gradients are reduced; None for anything else."""
    own = reducer_of(value)
    return None if own is None else own.kind


def _check_parameters(optimizer: torch.optim.Optimizer, known: Iterable[torch.nn.Parameter]) -> None:
    in_model = set(known)
    for number, group in enumerate(optimizer.param_groups):
        foreign = sum(parameter not in in_model for parameter in group["params"])
        if foreign:
            raise ValueError(
                f"{foreign} of {len(group['params'])} parameters in the optimizer's group {number} are not "
                "the model's; build the optimizer from the parameters of the model passed here"
            )


def _described(what: str, groups: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the parameters of an optimizer and its options are."""
    known = buffers.parameter_names()
    found: dict[str, str] = {}
    for group_number, group in enumerate(groups):
        where = f"group {group_number} of {what}"
        for number, parameter in enumerate(group["params"]):
            form = form_of(parameter) if parameter.requires_grad else f"{form_of(parameter)}, frozen"
            found[f"parameter {number} in {where}"] = " ".join([known.get(parameter, "of no model"), form])
        options = (item for item in group.items() if item[0] not in ("params", "param_names"))
        found |= {f"{option} in {where}": text_of(value) for option, value in options}
    return found


def _listed(choices: Any) -> str:
    return ", ".join(map(repr, get_args(choices)))
