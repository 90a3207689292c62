"""Compares an executor's call of `train` with the driver's: the same script may do other things there."""

from collections.abc import Mapping
from dataclasses import asdict

import torch

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training.option_check import REST, options_of

BY_DEVICE = ("num_dataloader_threads", "fused", "foreach", "capturable", "differentiable")
"""Arguments of `train`, and options of optimizers, that scripts choose by the device that they find."""

MOST_NAMED = 5
"""Differences that an error names."""


def describe(program: Program, config: TrainConfig) -> dict[str, str]:
    """What is trained, as text by name.

    It has the arguments of `train`, the shape of each parameter and buffer, and the optimizer with its
    options. What scripts choose by device is left out, since the driver has none: values and types of
    tensors, how the optimizer computes, and loading processes.
    """
    model, optimizer = program.model, program.optimizer
    arguments = {name: value for name, value in asdict(config).items() if name not in BY_DEVICE}
    options = {
        name: [{key: each for key, each in value.items() if key not in BY_DEVICE} for value in values]
        if name == REST
        else values
        for name, values in options_of(optimizer).items()
        if name not in BY_DEVICE
    }
    return {
        **{f"train()'s {name}": repr(value) for name, value in arguments.items()},
        **{f"parameter {name}": _text_of(tensor) for name, tensor in model.named_parameters()},
        **{f"buffer {name}": _text_of(tensor) for name, tensor in model.named_buffers()},
        "the optimizer": type(optimizer).__qualname__,
        "parameters of its groups": repr([len(group["params"]) for group in optimizer.param_groups]),
        **{f"the optimizer's {name}": repr(value) for name, value in options.items()},
    }


def check_same(driver: Mapping[str, str], here: Mapping[str, str], number: int) -> None:
    """Compare the descriptions of the driver's and this executor's call `number` of `train`.

    Raises:
        WmlaError: they differ.
    """
    names = [name for name in {**driver, **here} if driver.get(name) != here.get(name)]
    if names:
        found = "; ".join(
            f"{name} is {here.get(name, 'missing')} here, {driver.get(name, 'missing')} in the driver"
            for name in names[:MOST_NAMED]
        )
        rest = f"; and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        raise WmlaError(
            f"call {number} of train() differs in this executor: {found}{rest}. What the script does before "
            "train() must not depend on the process, the clock, what a logger has collected, or the GPU, "
            "which the driver does not have"
        )


def _text_of(tensor: torch.Tensor) -> str:
    frozen = isinstance(tensor, torch.nn.Parameter) and not tensor.requires_grad
    return f"{tuple(tensor.shape)}{', frozen' * frozen}"
