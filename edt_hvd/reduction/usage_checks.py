"""Mistakes with which a script would train another model than it says, without a word.

They are what a loop written for one process has, and what works there: an optimizer that is not distributed,
gradients clipped inside the loop over a step, a loss divided for accumulation. `reducer` and the loader find
the others, which show in what they do anyway.
"""

import dis
import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.nn.utils import clip_grad
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from edt_hvd.errors import GradientError
from edt_hvd.reduction.gradients.reducer import not_reduced
from edt_hvd.reduction.optimizer import reducer_of

_alone: Any = WeakIdKeyDictionary()
"""Parameters that get gradients in a loop over a step although no distributed optimizer has them."""

_watched: Any = WeakIdKeyDictionary()
"""Parameters of optimizers that are not distributed."""

_steps = 0
_further_passes = 0
_loops = 0


@functools.cache
def watch() -> None:
    """Look at every optimizer's steps, and at what clips gradients, from now on."""
    register_optimizer_step_pre_hook(_before_optimizer_step)
    register_optimizer_step_post_hook(_count)
    for function in (clip_grad.clip_grad_norm_, clip_grad.clip_grad_value_):
        _wrap(function)


def optimizer_steps() -> int:
    """A number that grows whenever a step of any optimizer in this process begins or ends."""
    return _steps


def note_pass(number: int) -> None:
    """A pass over a step begins: its first, of number 0, or a further one."""
    global _further_passes
    _further_passes += number > 0


def further_passes() -> int:
    """How many passes but the first over their steps have begun in this process."""
    return _further_passes


@contextmanager
def in_loop() -> Iterator[None]:
    """A loop over a step's micro-batches is under way."""
    global _loops
    _loops += 1
    try:
        yield
    finally:
        _loops -= 1


@contextmanager
def collecting() -> Iterator[None]:
    """In the loop, code runs that has its gradients in ``.grad``."""
    global _loops
    before, _loops = _loops, 0
    try:
        yield
    finally:
        _loops = before


def check_loss(loss: torch.Tensor, micro_batches: int, stacklevel: int = 3) -> None:
    """Look at what a loss is computed from; `micro_batches` are those of the whole batch.

    Warns:
        UserWarning: the loss is divided by the number of micro-batches, or all its gradients are of
            parameters that no distributed optimizer has.
    """
    if micro_batches > 1 and _divisor(loss) == micro_batches:
        warnings.warn(
            f"step.backward() got a loss that is divided by {micro_batches}, the number of the step's "
            "micro-batches; it weights each micro-batch itself, so do not divide for accumulation",
            stacklevel=stacklevel,
        )
    reached = list(_parameters_of(loss))
    found = [each for each in not_reduced(reached) if each not in _alone]
    for parameter in found:
        _alone[parameter] = True
    if found and len(not_reduced(reached)) == len(reached):
        warnings.warn(
            f"step.backward() computes gradients of {len(reached)} parameters, and no DistributedOptimizer "
            "has one of them: they stay on the worker that computed them. Pass the optimizer that is to "
            "train them to edt_hvd.DistributedOptimizer",
            stacklevel=stacklevel,
        )


def refuse_unpacking(caller: FrameType) -> None:
    """Refuse to iterate over a step where `caller` assigns it to several names.

    They would be micro-batches, as many as happen to be there.

    Raises:
        TypeError: that is what the instruction under way does.
    """
    opcode, names = caller.f_code.co_code[caller.f_lasti :][:2]
    if dis.opname[opcode] == "UNPACK_EX" or (dis.opname[opcode] == "UNPACK_SEQUENCE" and names > 1):
        raise TypeError(
            "a step is assigned to several names, as a batch would be; the loader gives steps, and a step "
            "micro-batches: for step in state.loader: for inputs, targets in step: ..."
        )


def check_counting(caller: FrameType) -> None:
    """Look for a count of the steps that a generator between it and the loader keeps from being corrected.

    Warns:
        UserWarning: `caller` is such a generator, of tqdm for instance, and its caller enumerates it.
    """
    counting = caller.f_back if caller.f_code.co_flags & inspect.CO_GENERATOR else None
    if counting is None or "enumerate" not in counting.f_code.co_names:
        return
    instructions = dis.get_instructions(counting.f_code)
    following = next((each for each in instructions if each.offset > counting.f_lasti), None)
    if following is not None and following.opname == "UNPACK_SEQUENCE":
        warnings.warn(
            "enumerate() around another iterator over the loader, tqdm for instance, counts from 0 where the "
            "loop begins in the middle of an epoch, after a resize; use step.index for the number, or "
            "enumerate the loader itself: tqdm(enumerate(state.loader))",
            stacklevel=4,
        )


def _count(*_: Any) -> None:
    global _steps
    _steps += 1


def _before_optimizer_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    _count()
    if reducer_of(optimizer) is not None:
        return
    parameters = itertools.chain.from_iterable(group["params"] for group in optimizer.param_groups)
    own = not_reduced(parameters)
    if any(parameter in _alone and parameter.grad is not None for parameter in own):
        kind = type(optimizer).__name__
        raise GradientError(
            f"{kind}.step() on gradients from the loop over a step, but this {kind} is not distributed: "
            "every worker would train a model of its own; make it with "
            f"optimizer = edt_hvd.DistributedOptimizer({kind}(...), model), and call step.backward(loss)"
        )
    for parameter in own:
        if parameter not in _watched and parameter.requires_grad:
            _watched[parameter] = parameter.register_post_accumulate_grad_hook(_note_gradient)  # type: ignore[no-untyped-call]


def _note_gradient(parameter: torch.Tensor) -> None:
    if _loops:
        _alone[parameter] = True


def _parameters_of(loss: torch.Tensor) -> Iterator[torch.nn.Parameter]:
    """The parameters that a backward pass from `loss` reaches."""
    seen = {loss.grad_fn}
    ahead = list(seen)
    while ahead:
        node = ahead.pop()
        variable = getattr(node, "variable", None)  # the node that adds to a leaf's gradient has it
        if isinstance(variable, torch.nn.Parameter):
            yield variable
        found = {following for following, _ in getattr(node, "next_functions", ())} - seen
        seen |= found
        ahead += found


def _divisor(loss: torch.Tensor) -> float | None:
    """The number that the loss was divided by last, if it was."""
    kind = loss.grad_fn.name() if loss.grad_fn is not None else ""
    saved = getattr(loss.grad_fn, "_saved_other", None)  # a tensor, of a plain number too
    if kind not in ("DivBackward0", "MulBackward0") or saved is None or saved.numel() != 1:
        return None
    number = float(saved.detach())
    return number if kind == "DivBackward0" else 1 / number if number else None


def _wrap(function: Callable[..., Any]) -> None:
    """Have one of torch's clipping functions refuse to run inside the loop over a step.

    The function's body is replaced where torch's decorator keeps it, because scripts may have imported the
    function already. Where no decorator keeps it, those that import it from now on get the other one.
    """
    inner = inspect.unwrap(function)

    @functools.wraps(inner)
    def checked(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if _loops:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            if len(not_reduced(parameters)) < len(parameters):
                raise GradientError(
                    f"{function.__name__}() inside the loop over a step's micro-batches, where there are no "
                    "gradients yet; call it after that loop, before optimizer.step()"
                )
        return inner(parameters, *args, **kwargs)

    kept = [cell for cell in function.__closure__ or () if cell.cell_contents is inner]
    for cell in kept:
        cell.cell_contents = checked
    for module in (clip_grad, torch.nn.utils) if not kept else ():
        if getattr(module, function.__name__, None) is function:
            setattr(module, function.__name__, checked)
