"""The distributed optimizer: an ordinary torch optimizer whose gradients are those of the whole batch."""

import itertools
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import torch

from edt_hvd import reducer
from edt_hvd.reducer import RingReducer

OptimizerT = TypeVar("OptimizerT", bound=torch.optim.Optimizer)
Reduction = Literal["ring"]

_REDUCERS = {"ring": RingReducer}
_serial = itertools.count()


def DistributedOptimizer(  # noqa: N802 - the name Horovod's users know
    optimizer: OptimizerT,
    model: torch.nn.Module | None = None,
    *,
    reduction: Reduction = "ring",
    bucket_bytes: int = reducer.BUCKET_BYTES,
) -> OptimizerT:
    """Make `optimizer` step on gradients reduced over all workers.

    In a loop over an `ElasticDataLoader` the gradients are complete when the loop over a step ends, so that
    clipping, `GradScaler` and `optimizer.step()` work as in one process. In any other loop the gradients
    found by `optimizer.step()` are averaged over the workers, as Horovod's optimizer does.

    Args:
        optimizer: any optimizer of torch's; the same object is returned.
        model: when given, every parameter of the optimizer must be one of its parameters.
        reduction: "ring", a sum in the gradients' own type by Horovod's ring-allreduce.
        bucket_bytes: gradients are put together into all-reduces of about this size.

    Returns:
        `optimizer` itself: schedulers, scalers, hooks and `state_dict` see what they always see.

    Raises:
        ValueError: an unknown reduction, or an optimizer that is distributed already.
        ValueError: a parameter of the optimizer that is not in `model`.
    """
    if reduction not in _REDUCERS:
        raise ValueError(
            f"reduction={reduction!r} is unknown; choose one of {', '.join(map(repr, _REDUCERS))}"
        )
    if hasattr(optimizer, "_edt_reducer"):
        raise ValueError("this optimizer is distributed already; call DistributedOptimizer once on it")
    if model is not None:
        _check_parameters(optimizer, model.parameters())

    def parameters() -> list[torch.nn.Parameter]:
        return [parameter for group in optimizer.param_groups for parameter in group["params"]]

    own = _REDUCERS[reduction](str(next(_serial)), parameters, bucket_bytes)
    reducer.register(own)
    optimizer._edt_reducer = own  # type: ignore[attr-defined]

    def before_step(*_: Any) -> None:
        own.before_optimizer_step()

    optimizer.register_step_pre_hook(before_step)
    return optimizer


def reductions() -> list[str]:
    """How the gradients of the distributed optimizers alive are reduced, one name each."""
    names: dict[type, str] = {kind: name for name, kind in _REDUCERS.items()}
    return [names[type(each)] for each in reducer.active() if type(each) in names]


def _check_parameters(optimizer: torch.optim.Optimizer, known: Iterable[torch.nn.Parameter]) -> None:
    in_model = set(known)
    for number, group in enumerate(optimizer.param_groups):
        foreign = sum(parameter not in in_model for parameter in group["params"])
        if foreign:
            raise ValueError(
                f"{foreign} of {len(group['params'])} parameters in the optimizer's group {number} are not "
                "the model's; build the optimizer from the parameters of the model passed here"
            )
