"""The program's own callbacks in an executor, and what of them belongs to the training's state."""

import inspect
import io
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import partial
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.serialization import default_restore_location

import edt_hvd
from edt_hvd.wmla.training import pickling
from edt_hvd.wmla.training.variables import variables_of

PLAIN = (bool, int, float, complex, str, bytes, type(None), date, datetime, time, timedelta)

ITSELF = ""
"""Stands among a callback's attributes for the callback."""


class Saved(NamedTuple):
    """What is saved of a value.

    Attributes:
        content: the value, or its `state_dict`.
        is_state: which of them.
    """

    content: Any
    is_state: bool


class Hooks:
    """Calls the callbacks' hooks, those that there are.

    Their attributes that are plain values, NumPy's, tensors, or objects with `state_dict` such as schedulers,
    are part of the training's state: executors that join are given them, and they go back with the training
    after a loss. So are callbacks with a `state_dict` of their own, and variables of the script that their
    methods use, if they are such objects, or such values and the methods assign them. The state is that of
    the last hook: what callbacks change while mini-batches are computed is each executor's own. So are paths
    in its ``LOG_DIR``.

    Args:
        callbacks: objects with any of `callbacks.Callback`'s methods; are given ``params`` and ``model``.
    """

    def __init__(
        self,
        callbacks: Sequence[Any],
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        epochs: int,
    ) -> None:
        self._callbacks = tuple(callbacks)
        self._model = model
        self._optimizer = optimizer
        self._variables = variables_of(self._callbacks)
        for callback in self._callbacks:
            callback.params = {"optimizer": optimizer, "epochs": epochs}
            callback.model = model
        self._state = self._pickled()

    def train_begin(self) -> None:
        """Before the state is brought to this executor, so that it counts more than what the hooks change."""
        self._call("on_train_begin")

    def train_end(self) -> None:
        """After the last epoch."""
        self._call("on_train_end")

    def epoch_begin(self, epoch: int) -> None:
        """Before epoch `epoch`, from 0."""
        self._call("on_epoch_begin", epoch)

    def epoch_end(self, epoch: int, save_model: bool) -> None:
        """After epoch `epoch`; those that take it are told whether to save the model."""
        for callback in self._callbacks:
            hook = getattr(callback, "on_epoch_end", None)
            if hook is not None:
                arguments = {"save_model": save_model} if _takes_save_model(hook) else {}
                hook(epoch, **arguments)
        self._state = self._pickled()

    def _call(self, name: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            hook = getattr(callback, name, None)
            if hook is not None:
                hook(*arguments)
        self._state = self._pickled()

    def state_dict(self) -> dict[str, Any]:
        """The state of all callbacks, pickled once after each hook: it is asked for after every step."""
        return {"pickled": self._state}

    def _pickled(self) -> bytes:
        file = io.BytesIO()
        parts = [self._of_variables(), *map(self._of_callback, self._callbacks)]
        torch.save(parts, file, pickle_module=pickling)
        return file.getvalue()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        file = io.BytesIO(state["pickled"])
        of_variables, *of_callbacks = torch.load(file, map_location=_placed, weights_only=False)
        for key, saved in of_variables.items():
            if key in self._variables:
                variable = self._variables[key]
                _load(saved, variable.value, variable.assign)
        for callback, attributes in zip(self._callbacks, of_callbacks, strict=True):
            for name, saved in attributes.items():
                present = callback if name == ITSELF else getattr(callback, name, None)
                _load(saved, present, partial(setattr, callback, name))
        self._state = state["pickled"]

    def _of_callback(self, callback: Any) -> dict[str, Saved]:
        attributes = {n: v for n, v in vars(callback).items() if n not in ("params", "model")}
        return dict(self._saved(attributes | ({ITSELF: callback} if _is_stateful(callback) else {})))

    def _of_variables(self) -> dict[str, Saved]:
        found = dict(self._saved({key: each.value for key, each in self._variables.items()}))
        return {k: saved for k, saved in found.items() if saved.is_state or self._variables[k].is_assigned}

    def _saved(self, values: Mapping[str, Any]) -> Iterator[tuple[str, Saved]]:
        trained = set(map(_memory, self._trained())) - {0}
        for name, value in values.items():
            if _is_stateful(value):
                yield name, Saved(value.state_dict(), is_state=True)
            elif _is_plain(value, trained) and not _is_in_log_dir(value):
                yield name, Saved(value, is_state=False)

    def _trained(self) -> Iterator[Any]:
        """Tensors that the training changes."""
        yield from self._model.parameters()
        yield from self._model.buffers()
        for values in (*self._optimizer.state.values(), *self._optimizer.param_groups):
            yield from values.values()


def _load(saved: Saved, present: Any, assign: Any) -> None:
    """Where there is no object to load a state, there is nothing to do: the hooks may make it later."""
    if not saved.is_state:
        if not _written(present, saved.content):
            assign(saved.content)
    elif _is_stateful(present):
        present.load_state_dict(saved.content)


def _written(present: Any, value: Any) -> bool:
    """Write a tensor or array into the present one, which others may use, too; False if it is another."""
    if type(present) is not type(value) or not isinstance(value, torch.Tensor | np.ndarray):
        return False
    fits = (present.shape, present.dtype) == (value.shape, value.dtype)
    writable = present.is_contiguous() if isinstance(present, torch.Tensor) else present.flags.writeable
    if fits and writable:
        with torch.no_grad():
            present[...] = value
    return bool(fits and writable)


def _placed(storage: Any, location: str) -> Any:
    """What was on another executor's GPU goes to this one's."""
    if location == "cpu":
        return storage
    return default_restore_location(storage, str(edt_hvd.device()))  # type: ignore[no-untyped-call]


def _takes_save_model(hook: Any) -> bool:
    parameters = inspect.signature(hook).parameters
    return "save_model" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _is_stateful(value: Any) -> bool:
    other = isinstance(value, torch.nn.Module | torch.optim.Optimizer | type)
    return not other and hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _is_plain(value: Any, trained: set[int]) -> bool:
    """Whether it is a value to be copied, and no view of what is trained, whose memory is at `trained`."""
    if isinstance(value, dict):
        return all(_is_plain(key, trained) and _is_plain(each, trained) for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return all(_is_plain(each, trained) for each in value)
    if type(value) in (torch.Tensor, np.ndarray):
        return not _has_objects(value) and _memory(value) not in trained
    if isinstance(value, np.generic):
        return not _has_objects(value)
    return type(value) in PLAIN or isinstance(value, Enum | PurePath)


def _is_in_log_dir(value: Any) -> bool:
    """Whether it is a path in the folder that this executor alone has; those that join have their own."""
    folder = os.environ.get("LOG_DIR")
    is_path = isinstance(value, str | PurePath) and bool(folder)
    return is_path and Path(os.path.abspath(value)).is_relative_to(os.path.abspath(str(folder)))


def _has_objects(value: Any) -> bool:
    return bool(getattr(value.dtype, "hasobject", False))


def _memory(value: Any) -> int:
    """Where the memory of a tensor, or of an array that views one, begins; 0 if there is none."""
    while isinstance(value, np.ndarray):
        value = value.base
    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.untyped_storage().data_ptr() if dense else 0
