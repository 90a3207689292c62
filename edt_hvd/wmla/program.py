"""What is trained: the objects and functions that a program gives to `FabricModel`."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from edt_hvd.wmla.errors import UnsupportedError

REFUSAL = (
    "EDT trains PyTorch models only; programs for Keras and TensorFlow have to be ported to PyTorch "
    "(see docs/how-to/wmla-programs.md)"
)

FOREIGN = ("keras", "tensorflow", "tf_keras")
"""Packages whose programs are not trained."""

HOOKS = ("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end")
"""Methods of callbacks, of which they have any."""


@dataclass
class Program:
    """A model and all that it takes to train it. See `FabricModel` for what each is."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    loss_function: Callable[..., Any]
    datasets_function: Callable[[], Any]
    metrics: tuple[Callable[..., Any], ...] = ()
    user_callback: tuple[Any, ...] = ()
    worker_logger: Any = None
    enable_onnx: bool = False
    fn_step_train: Callable[..., Any] | None = None
    fn_test: Callable[..., Any] | None = None
    fn_batch_collate: Callable[..., Any] | None = None

    @property
    def objects(self) -> tuple[Any, ...]:
        """What it was given besides model, optimizer and callbacks, and calls."""
        functions = (self.fn_step_train, self.fn_test, self.fn_batch_collate, self.datasets_function)
        found = [each for each in (self.loss_function, *self.metrics, *functions) if each is not None]
        return tuple(dict.fromkeys([*found, *(getattr(each, "__self__", each) for each in found)]))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names that the metrics are logged under."""
        return tuple(_name_of(metric) for metric in self.metrics)


def check_backend(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse the backends that are not PyTorch.

    Raises:
        UnsupportedError: ``FABRIC_BACKEND`` names another one.
    """
    backend = environ.get("FABRIC_BACKEND", "pytorch")
    if backend.lower() != "pytorch":
        raise UnsupportedError(f"FABRIC_BACKEND={backend}: {REFUSAL}")


def refuse_keras(model: Any, *others: Any) -> None:
    """Refuse what is Keras's or TensorFlow's.

    Raises:
        UnsupportedError: a model of theirs, or names of losses or optimizers.
    """
    if type(model).__module__.partition(".")[0] in FOREIGN:
        raise UnsupportedError(
            f"a model of type {type(model).__module__}.{type(model).__qualname__}: {REFUSAL}"
        )
    names = [repr(other) for other in others if isinstance(other, str)]
    if names:
        raise UnsupportedError(
            f"{' and '.join(names)}, as in programs for Keras; give a torch optimizer of the model's "
            f"parameters, and a function (output, target) as loss_function: {REFUSAL}"
        )


def check_model(model: Any, optimizer: Any) -> None:
    """Check what is to be trained.

    Raises:
        TypeError: no module, or no optimizer.
        ValueError: lazy layers that have not run; an optimizer of other parameters, or one that needs a
            closure; sparse gradients.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; give a torch.nn.Module")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer is a {type(optimizer).__name__}; give a torch Optimizer of the model's parameters"
        )
    parameters: list[tuple[str, Any]] = list(model.named_parameters())
    lazy = [name for name, parameter in parameters if torch.nn.parameter.is_lazy(parameter)]
    if lazy:
        raise ValueError(
            f"{lazy[0]} of the model has no shape yet, since its layer is a lazy one; run the model on one "
            "batch before FabricModel is made"
        )
    known = set(model.parameters())
    foreign = sum(p not in known for group in optimizer.param_groups for p in group["params"])
    if foreign:
        raise ValueError(
            f"{foreign} of the optimizer's parameters are not the model's; make the optimizer from the "
            "parameters of the model that FabricModel is given"
        )
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(
            f"{type(optimizer).__name__} computes the loss several times in a step, but a step's gradient is "
            "that of mini-batches which are computed once, by several executors; use SGD or Adam, for example"
        )
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise ValueError("SparseAdam needs sparse gradients, which cannot be reduced; use Adam")
    for name, layer in model.named_modules():
        is_embedding = isinstance(layer, torch.nn.Embedding | torch.nn.EmbeddingBag)
        if is_embedding and layer.sparse and layer.weight.requires_grad:
            raise ValueError(
                f"{name or 'model'} is an {type(layer).__name__} with sparse gradients, which cannot be "
                "reduced; make it with sparse=False"
            )


def check_callable(name: str, value: Any) -> None:
    """Check a function that the program gives.

    Raises:
        TypeError: it cannot be called.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{name} is a {type(value).__name__}; give a function")


def callbacks(given: Any) -> tuple[Any, ...]:
    """`user_callback` as a tuple; one callback may come without a list.

    Raises:
        TypeError: something that has no hooks, or no room for ``params`` and ``model``.
    """
    found = () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)
    for callback in found:
        if isinstance(callback, type) or not any(hasattr(callback, hook) for hook in HOOKS):
            raise TypeError(
                f"user_callback has {callback!r}; give a list of objects with hooks such as {HOOKS[-1]}, as "
                "Callback has them"
            )
        if not hasattr(callback, "__dict__"):
            raise TypeError(
                f"user_callback has a {type(callback).__name__}, which has no __dict__; derive it from "
                "Callback, or leave out __slots__"
            )
    return found


def metric_functions(metrics: Any) -> tuple[Callable[..., Any], ...]:
    """`metrics` as functions; the names of what is logged anyway may be among them.

    Raises:
        TypeError: a name of another metric, or something that cannot be called.
    """
    if metrics is None:
        return ()
    given: Sequence[Any] = (
        metrics if isinstance(metrics, Sequence) and not isinstance(metrics, str) else [metrics]
    )
    functions = [metric for metric in given if metric not in ("accuracy", "acc", "loss")]
    for metric in functions:
        if not callable(metric):
            raise TypeError(f"metrics has {metric!r}; give functions (output, target) -> number")
    return tuple(functions)


def _name_of(metric: Any) -> str:
    return str(getattr(metric, "__name__", type(metric).__name__))
