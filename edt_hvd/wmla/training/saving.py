"""The models that a training leaves behind: state dicts of the program's own names, in CPU memory."""

import copy
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from edt_hvd import torch_file
from edt_hvd.wmla.atomic_file import replacing

FINAL = "final"


def model_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """``$SAVED_MODEL_DIR``, else ``$RESULT_DIR/model``, else ``model`` in the working directory."""
    if "SAVED_MODEL_DIR" in environ:
        return Path(environ["SAVED_MODEL_DIR"])
    return Path(environ.get("RESULT_DIR", "."), "model")


def model_path(folder: Path, epoch: int | str) -> Path:
    """Where the model after epoch `epoch`, from 1, or the `FINAL` one is."""
    return folder / "train" / f"model_epoch_{epoch}.pth"


def optimizer_path(folder: Path, epoch: int | str) -> Path:
    """Where the state of its optimizer is."""
    return folder / "train" / f"model_epoch_{epoch}_optimizer_state.pth"


def onnx_path(folder: Path) -> Path:
    """Where the final model is in ONNX's format."""
    return folder / "train" / f"model_epoch_{FINAL}.onnx"


def save(folder: Path, epoch: int | str, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write both."""
    states = {model_path: model.state_dict(), optimizer_path: optimizer.state_dict()}
    for path_of, state in states.items():
        path_of(folder, epoch).parent.mkdir(parents=True, exist_ok=True)
        with replacing(path_of(folder, epoch)) as file:
            torch_file.save(on_cpu(state), file)


def export_onnx(path: Path, model: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
    """Write the model in ONNX's format; a warning says so where that is not possible."""
    training = model.training
    model.eval()
    beside = path.with_name(path.name + ".new")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own code
            torch.onnx.export(
                model,
                inputs,
                str(beside),
                dynamo=True,  # the default from torch 2.9 on
                external_data=False,
                verbose=False,
                dynamic_shapes=_of_any_batch(inputs),
            )
        beside.replace(path)
    except Exception as error:  # noqa: BLE001 - exporters raise what they like; the training is not lost for it
        warnings.warn(
            f"the model was not written as {path.name}: {type(error).__name__}: {error}; the trained weights "
            f"are in {path.parent}",
            stacklevel=2,
        )
    finally:
        beside.unlink(missing_ok=True)
        model.train(training)


def _of_any_batch(inputs: tuple[Any, ...]) -> Any:
    """The first dimension is free where the model allows it; None where that cannot be said."""
    if not all(isinstance(each, torch.Tensor) and each.dim() for each in inputs):
        return None
    return tuple({0: torch.export.Dim.AUTO} for _ in inputs)


def on_cpu(value: Any) -> Any:
    """The value with copies of its tensors in CPU memory."""
    if isinstance(value, torch.Tensor):
        # A copy also of what is in CPU memory already: a view would be saved with all that it is a part of.
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        found = copy.copy(value)  # keeps the versions that torch notes beside the entries
        found.update({name: on_cpu(each) for name, each in value.items()})
        return found
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(map(on_cpu, value))
    return value
