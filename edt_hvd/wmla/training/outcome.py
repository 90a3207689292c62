"""What a training leaves behind for the script in the driver."""

from collections.abc import Mapping
from pathlib import Path

import torch

from edt_hvd import torch_file
from edt_hvd.wmla.atomic_file import replacing
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.training.hooks import Hooks
from edt_hvd.wmla.training.saving import on_cpu


def save(path: Path, program: Program, hooks: Hooks) -> None:
    """Write weights, what is frozen, modes, the optimizer's state and that of the callbacks."""
    model = program.model
    content = {
        "model": on_cpu(model.state_dict()),
        "caches": on_cpu(_caches(model)),
        "trained": [parameter.requires_grad for parameter in model.parameters()],
        "modes": [module.training for module in model.modules()],
        "optimizer": on_cpu(program.optimizer.state_dict()),
        "hooks": hooks.outcome(),
    }
    with replacing(path) as file:
        torch_file.save(content, file)


def load(path: Path, program: Program, epochs: int) -> None:
    """Bring the program to where the executors have left it.

    Args:
        path: of the file.
        program: on the CPU.
        epochs: of the training, for the callbacks.
    """
    # The job's own executors wrote it, and a module's extra state may be of any class.
    content = torch.load(path, map_location="cpu", weights_only=False)
    model = program.model
    model.load_state_dict(content["model"])
    _load_caches(model, content["caches"])
    for parameter, is_trained in zip(model.parameters(), content["trained"], strict=True):
        parameter.requires_grad_(is_trained)
    for module, mode in zip(model.modules(), content["modes"], strict=True):
        module.training = mode
    program.optimizer.load_state_dict(content["optimizer"])
    hooks = Hooks(program.user_callback, model, program.optimizer, epochs, program.objects)
    hooks.load_state_dict(content["hooks"])


def _caches(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The buffers that are not in the model's ``state_dict``, by name."""
    saved = model.state_dict().keys()
    return {name: buffer for name, buffer in model.named_buffers() if name not in saved}


def _load_caches(model: torch.nn.Module, saved: Mapping[str, torch.Tensor]) -> None:
    """Load those that the model has in the same form, as executors that join do."""
    with torch.no_grad():
        for name, own in _caches(model).items():
            value = saved.get(name)
            if value is not None and (value.shape, value.dtype) == (own.shape, own.dtype):
                own.copy_(value)
