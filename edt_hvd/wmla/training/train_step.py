"""What happens to one mini-batch in training: the engine's own way, or the program's `fn_step_train`."""

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

import edt_hvd
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import MiniBatch
from edt_hvd.wmla.training.data import inputs_and_target, moved
from edt_hvd.wmla.training.metrics import Number, accuracy, as_float, measured


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


TrainStep = Callable[[edt_hvd.Step, Any], Outcome]
"""Gives a step the gradients of one mini-batch."""


def train_step(program: Program, loader: edt_hvd.ElasticDataLoader) -> TrainStep:
    """How a program trains: by its ``fn_step_train(model, data, eva, train_loader, fn_args) -> (acc, loss)``.

    Without one: forward pass, loss function, backward pass.
    """

    def default(step: edt_hvd.Step, data: Any) -> Outcome:
        loss, outcome = computed(program, data)
        step.backward(loss)
        return outcome

    def own(step: edt_hvd.Step, data: Any) -> Outcome:
        found: list[Outcome] = []

        def body() -> torch.Tensor:
            found.append(_call(program, loader, data))
            return torch.as_tensor(found[0].loss)

        step.collect(body)
        for parameter in program.model.parameters():  # those that the optimizer does not have
            parameter.grad = None
        return found[0]

    return default if program.fn_step_train is None else own


def _call(program: Program, loader: edt_hvd.ElasticDataLoader, data: Any) -> Outcome:
    assert program.fn_step_train is not None
    with program_view(program, "fn_step_train") as outputs:
        answer = program.fn_step_train(program.model, as_pair(data), accuracy, loader, None)
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TypeError(f"fn_step_train returned {answer!r}; return (acc, loss)")
    found, loss = answer
    metrics = measured_of(outputs, data, program.metrics)
    return Outcome(torch.as_tensor(loss).detach().reshape(()), found, metrics)


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


@contextmanager
def program_view(program: Program, caller: str) -> Iterator[list[Any]]:
    """Around a call of the program's own step or test: the model has what such functions ask it for.

    The model gets ``get_optimizer`` and ``get_loss_function``. The optimizer's `step` does nothing: the
    engine steps, once for the mini-batches of all executors.

    Args:
        program: whose model and optimizer they are.
        caller: the name of the function, for messages.

    Yields:
        A list that has the outputs of the model's last forward pass, once there was one.

    Raises:
        TypeError: at the end: the function has changed what has to be the same in all executors.
    """
    model, optimizer, outputs = program.model, program.optimizer, list[Any]()

    def note(module: torch.nn.Module, _: Any, found: Any) -> None:
        if module is model:  # copies of it have this hook, too
            outputs[:] = [found]

    def step(_: torch.optim.Optimizer, closure: Callable[[], Any] | None = None) -> Any:
        return closure() if closure is not None else None

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{caller} loads a state into the optimizer; do so before train()")

    options, parameters = _options_of(optimizer), set(model.parameters())
    getters = {"get_optimizer": lambda: optimizer, "get_loss_function": lambda: program.loss_function}
    hook = model.register_forward_hook(note)
    try:
        own = {"step": types.MethodType(step, optimizer), "load_state_dict": refuse}
        with _replaced(model, getters), _replaced(optimizer, own):
            yield outputs
    finally:
        hook.remove()
    if new := [name for name, each in model.named_parameters() if each not in parameters]:
        raise TypeError(
            f"{caller} gives the model a new parameter, {new[0]}, which nothing would train; make layers and "
            "parameters before the optimizer"
        )
    if changed := sorted(option for option, _ in _options_of(optimizer).items() ^ options.items()):
        number, name = changed[0]
        raise TypeError(
            f"{caller} sets {name!r} of parameter group {number}, which each executor would do for "
            "mini-batches of its own; set it in a Callback's on_epoch_begin, in params['optimizer']"
        )


@contextmanager
def _replaced(thing: Any, attributes: Mapping[str, Any]) -> Iterator[None]:
    """Give an object attributes of its own for a while."""
    before = {name: vars(thing)[name] for name in attributes if name in vars(thing)}
    vars(thing).update(attributes)
    try:
        yield
    finally:
        for name in attributes:
            vars(thing).pop(name, None)
        vars(thing).update(before)


def _options_of(optimizer: torch.optim.Optimizer) -> dict[tuple[int, str], str]:
    """Of all parameter groups, by the number of the group and the name of the option."""
    return {
        (number, name): str(len(value)) if name == "params" else repr(value)
        for number, group in enumerate(optimizer.param_groups)
        for name, value in group.items()
    }


def as_pair(data: Any) -> Any:
    """torch's loader makes lists of what samples have as tuples."""
    return tuple(data) if isinstance(data, list) else data


def target_of(data: Any) -> Any:
    """The last part of a batch; None if it has no parts."""
    return data[-1] if isinstance(data, tuple | list) and data else None


def measured_of(outputs: list[Any], data: Any, metrics: Any) -> tuple[Number, ...]:
    """The program's own metrics of what its own step has made of a mini-batch."""
    last = outputs[0] if outputs else None
    last = last.detach() if isinstance(last, torch.Tensor) else last
    device = last.device if isinstance(last, torch.Tensor) else edt_hvd.device()
    return measured(metrics, last, moved(target_of(data), device)) if metrics else ()
