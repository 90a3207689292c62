"""What happens to one mini-batch in training: the engine's own way, or the program's `fn_step_train`."""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from typing_extensions import override

import edt_hvd
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import MiniBatch
from edt_hvd.wmla.training.data import inputs_and_target, moved
from edt_hvd.wmla.training.metrics import Number, accuracy, as_float, measured
from edt_hvd.wmla.training.step_optimizer import StepOptimizer


class Outcome(NamedTuple):
    """What came of one mini-batch, where it was computed; reading it may wait for a GPU."""

    loss: Number
    accuracy: Number
    metrics: tuple[Number, ...]

    def read(self, samples: int) -> MiniBatch:
        """As numbers."""
        metrics = tuple(as_float("a metric", value) for value in self.metrics)
        return MiniBatch(
            samples, as_float("the loss", self.loss), as_float("the accuracy", self.accuracy), metrics
        )


class TrainStep(Protocol):
    """Trains on mini-batches."""

    def train(self, step: edt_hvd.Step, data: Any) -> Outcome:
        """Give the step its gradients."""


class DefaultTrainStep(TrainStep):
    """Forward pass, loss function, backward pass."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @override
    def train(self, step: edt_hvd.Step, data: Any) -> Outcome:
        loss, outcome = computed(self._program, data)
        step.backward(loss)
        return outcome


def computed(program: Program, data: Any) -> tuple[torch.Tensor, Outcome]:
    """The loss of a mini-batch, to take gradients of, and what came of it."""
    inputs, target = inputs_and_target(moved(data, edt_hvd.device()))
    try:
        outputs = program.model(*inputs)
        loss = program.loss_function(outputs, target)
    except Exception as error:
        if isinstance(target, torch.Tensor) and target.shape[:1] == (1,):
            error.add_note(
                "This mini-batch has one sample. If it is what is left over, choose a batch_size that does "
                "not leave one sample over, or drop it in datasets_function: short ones are not dropped."
            )
        raise
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise TypeError(f"loss_function returned {loss!r}; return the mean over the mini-batch, a tensor")
    metrics = measured(program.metrics, outputs, target)
    return loss, Outcome(loss.detach(), accuracy(outputs, target), metrics)


class ModelView:
    """What the program's own steps get as the model: the module, with optimizer and loss function.

    `isinstance` takes it for the module. A method that returns the module, such as `to`, returns this view.

    Args:
        module: is called, and has the attributes.
        optimizer: as the steps see it.
        loss_function: the program's.
    """

    outputs: Any
    """Of the last forward pass."""

    def __init__(self, module: torch.nn.Module, optimizer: Any, loss_function: Callable[..., Any]) -> None:
        self._module = module
        self._optimizer = optimizer
        self._loss_function = loss_function
        self.outputs = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._module)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the module."""
        self.outputs = self._module(*inputs, **named)
        return self.outputs

    def get_optimizer(self) -> Any:
        """The optimizer."""
        return self._optimizer

    def get_loss_function(self) -> Callable[..., Any]:
        """The loss function."""
        return self._loss_function

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        is_own = inspect.ismethod(value) and value.__self__ is self._module
        return self._chained(value) if is_own else value

    def _chained(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            found = method(*arguments, **named)
            return self if found is self._module else found

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_module", "_optimizer", "_loss_function", "outputs"):
            super().__setattr__(name, value)
        else:
            setattr(self._module, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._module[key]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self._module)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._module)  # type: ignore[call-overload,no-any-return]

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self._module, memo)


class _StepView(ModelView):
    """The model of a `fn_step_train`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and isinstance(value, torch.nn.Module | torch.nn.Parameter):
            raise TypeError(
                f"fn_step_train sets model.{name} to a {type(value).__name__}, which nothing would train; "
                "make layers and parameters before the optimizer"
            )
        super().__setattr__(name, value)


class ProgramTrainStep(TrainStep):
    """The program's ``fn_step_train(model, data, eva, train_loader, fn_args) -> (acc, loss)``."""

    def __init__(self, program: Program, loader: edt_hvd.ElasticDataLoader) -> None:
        assert program.fn_step_train is not None
        self._function = program.fn_step_train
        self._metrics = program.metrics
        self._loader = loader
        self._model = program.model
        self._view = _StepView(program.model, StepOptimizer(program.optimizer), program.loss_function)

    @override
    def train(self, step: edt_hvd.Step, data: Any) -> Outcome:
        found: list[Outcome] = []

        def body() -> torch.Tensor:
            found.append(self._call(data))
            return torch.as_tensor(found[0].loss)

        step.collect(body)
        for parameter in self._model.parameters():  # those that the optimizer does not have
            parameter.grad = None
        return found[0]

    def _call(self, data: Any) -> Outcome:
        with forgetting(self._view):
            try:
                answer = self._function(self._view, as_pair(data), accuracy, self._loader, None)
            except edt_hvd.GradientError as error:
                raise edt_hvd.GradientError(
                    "fn_step_train steps an optimizer of the script, but an optimizer steps once for the "
                    "mini-batches of all executors; use model.get_optimizer(), whose step() has no effect"
                ) from error
            if not isinstance(answer, tuple | list) or len(answer) != 2:
                raise TypeError(f"fn_step_train returned {answer!r}; return (acc, loss)")
            metrics = measured_of(self._view.outputs, data, self._metrics)
        found, loss = answer
        return Outcome(torch.as_tensor(loss).detach().reshape(()), found, metrics)


@contextmanager
def forgetting(view: ModelView) -> Iterator[None]:
    """Do not keep the graph of the last outputs alive."""
    try:
        yield
    finally:
        view.outputs = None


def train_step(program: Program, loader: edt_hvd.ElasticDataLoader) -> TrainStep:
    """How a program trains."""
    return DefaultTrainStep(program) if program.fn_step_train is None else ProgramTrainStep(program, loader)


def as_pair(data: Any) -> Any:
    """torch's loader makes lists of what samples have as tuples."""
    return tuple(data) if isinstance(data, list) else data


def target_of(data: Any) -> Any:
    """The last part of a batch; None if it has no parts."""
    return data[-1] if isinstance(data, tuple | list) and data else None


def measured_of(outputs: Any, data: Any, metrics: Any) -> tuple[Number, ...]:
    """The program's own metrics of what its own step has made of a mini-batch."""
    outputs = outputs.detach() if isinstance(outputs, torch.Tensor) else outputs
    device = outputs.device if isinstance(outputs, torch.Tensor) else edt_hvd.device()
    return measured(metrics, outputs, moved(target_of(data), device)) if metrics else ()
