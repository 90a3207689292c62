"""The program's own callbacks in an executor, and what of them belongs to the training's state."""

import inspect
import io
import os
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePath
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from typing_extensions import override

import edt_hvd
from edt_hvd.refilling import is_shareable, refilled
from edt_hvd.wmla.training.variables import Dump, Variable, Variables

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

    A callback's state is its `state_dict()` if it has one, else all of its attributes; of those that had a
    `state_dict` when the training began, such as schedulers, that. It is part of the training's state:
    executors that join are given it, and it goes back with the training after a loss. It is that of the last
    hook: what callbacks change while mini-batches are computed is each executor's own. So are ``params``,
    ``model``, paths in the executor's ``LOG_DIR``, and attributes that cannot be pickled, which a warning
    names. The `Variables` that hooks have changed belong to it, too.

    Args:
        callbacks: objects with any of `callbacks.Callback`'s methods; are given ``params`` and ``model``.
        objects: what else the program was given, such as its loss function.
    """

    def __init__(
        self,
        callbacks: Sequence[Any],
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        epochs: int,
        objects: Sequence[Any] = (),
    ) -> None:
        self._callbacks = tuple(callbacks)
        for callback in self._callbacks:
            callback.params = {"optimizer": optimizer, "epochs": epochs}
            callback.model = model
        self._trained = _Trained(model, optimizer, self._callbacks, objects)
        self._made: list[frozenset[str]] = [frozenset() for _ in self._callbacks]
        self._own: set[tuple[int, str]] = set()
        self._state = b""

    def train_begin(self) -> None:
        """Before the state is brought to this executor, so that it counts more than what the hooks change."""
        self._call("on_train_begin")
        # Executors that join have these, since they call that hook, too; any others are given them whole.
        self._made = [
            frozenset(name for name, value in vars(callback).items() if _is_stateful(value))
            for callback in self._callbacks
        ]
        self._state = self._pickled()

    def train_end(self) -> None:
        """After the last epoch."""
        self._call("on_train_end")
        self._state = self._pickled()

    def epoch_begin(self, epoch: int) -> None:
        """Before epoch `epoch`, from 0."""
        self._call("on_epoch_begin", epoch)
        self._state = self._pickled()

    def epoch_end(self, epoch: int, save_model: bool) -> None:
        """After epoch `epoch`; those that take it are told whether to save the model."""
        self._call("on_epoch_end", epoch, save_model=save_model)
        self._state = self._pickled()

    def _call(self, name: str, *arguments: Any, **named: Any) -> None:
        found = (getattr(callback, name, None) for callback in self._callbacks)
        hooks = [hook for hook in found if hook is not None]
        if hooks:
            with self._trained.variables.watched(is_first=name == "on_train_begin"):
                for hook in hooks:
                    hook(*arguments, **(named if _takes(hook, named) else {}))

    def state_dict(self) -> dict[str, Any]:
        """The state of all callbacks, pickled once after each hook: it is asked for after every step."""
        return {"pickled": self._state}

    def outcome(self) -> dict[str, Any]:
        """The state for callbacks whose hooks are not called: whole objects, where they can be pickled."""
        return {"pickled": self._pickled(whole=True)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        saved, variables = self._trained.loads(state["pickled"])
        self._trained.variables.load(variables)
        for callback, attributes in zip(self._callbacks, saved, strict=True):
            for name, value in attributes.items():
                _load(callback, name, value)
        self._state = state["pickled"]

    def _pickled(self, *, whole: bool = False) -> bytes:
        states = [dict(self._saved(number, whole)) for number in range(len(self._callbacks))]
        try:
            return self._trained.dumps((states, self._trained.variables.changed()))
        except Exception:  # noqa: BLE001 - objects raise what they like when they are pickled
            for number, state in enumerate(states):
                self._leave_out(number, state, whole)
            return self._trained.dumps((states, self._trained.variables.changed()))

    def _saved(self, number: int, whole: bool) -> Iterator[tuple[str, Saved]]:
        callback = self._callbacks[number]
        if _is_stateful(callback):
            yield ITSELF, Saved(callback.state_dict(), is_state=True)
            return
        for name, value in vars(callback).items():
            is_own = name in ("params", "model") or (number, name) in self._own
            if not (is_own or self._trained.has(value) or _is_in_log_dir(value)):
                is_state = not whole and name in self._made[number] and _is_stateful(value)
                yield name, Saved(value.state_dict() if is_state else value, is_state)

    def _leave_out(self, number: int, state: dict[str, Saved], whole: bool) -> None:
        """Leave what cannot be pickled to each executor, from now on."""
        for name in list(state):
            try:
                self._trained.dumps(state[name])
            except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
                saved = state.pop(name)
                if whole and _is_stateful(saved.content):
                    state[name] = Saved(saved.content.state_dict(), is_state=True)
                    continue
                self._own.add((number, name))
                if not isinstance(error, _ViewError):
                    what = f"{type(self._callbacks[number]).__name__}.{name or 'state_dict()'}"
                    warnings.warn(
                        f"{what} cannot be pickled ({error}), so executors that join later do not get it: "
                        "give the callback state_dict and load_state_dict if the training depends on it",
                        stacklevel=2,
                    )


class _Trained:
    """What the training itself keeps: in every executor it is that executor's own, whatever refers to it."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        callbacks: Sequence[Any],
        objects: Sequence[Any],
    ) -> None:
        own = [*model.modules(), *model.parameters(), *model.buffers(), optimizer, *callbacks]
        self.parts = [*own, *(each for each in objects if is_shareable(each))]
        self.numbers = {id(part): number for number, part in enumerate(self.parts)}
        self.variables = Variables(objects, self.has, self.pickling)
        self._model, self._optimizer = model, optimizer

    def has(self, value: Any) -> bool:
        """Whether a value is a part of it."""
        return id(value) in self.numbers

    def memory(self) -> set[int]:
        """Where the memory of its tensors begins."""
        values = (*self._optimizer.state.values(), *self._optimizer.param_groups)
        tensors = [each for options in values for each in options.values()]
        return set(map(_memory, [*self._model.parameters(), *self._model.buffers(), *tensors])) - {0}

    def dumps(self, value: Any) -> bytes:
        """The value pickled, without the parts in it."""
        file = io.BytesIO()
        self.pickling()(value, file)
        return file.getvalue()

    def pickling(self) -> Dump:
        """What pickles values like that, until a variable is set or a tensor made."""
        memory, variables = self.memory(), self.variables.shared()

        def dump(value: Any, file: IO[bytes]) -> None:
            _Pickler(file, self.numbers, memory, variables).dump(value)

        return dump

    def loads(self, content: bytes) -> Any:
        """The value, with this executor's parts in it."""
        return _Unpickler(io.BytesIO(content), self).load()


class _ViewError(pickle.PicklingError):
    """A value views what is trained, which every executor has."""


class _Pickler(pickle.Pickler):
    """Refers to what is trained by number, to variables by name, and takes tensors from their GPU."""

    def __init__(
        self,
        file: IO[bytes],
        numbers: Mapping[int, int],
        memory: AbstractSet[int],
        variables: Mapping[int, Variable],
    ) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers, self._memory, self._variables = numbers, memory, variables

    @override
    def persistent_id(self, value: Any) -> int | tuple[str, ...] | None:
        number = self._numbers.get(id(value))
        variable = self._variables.get(id(value)) if number is None else None
        return number if variable is None else tuple(variable)

    @override
    def reducer_override(self, value: Any) -> Any:
        if _memory(value) in self._memory:
            raise _ViewError
        if isinstance(value, torch.Tensor) and value.device.type == "cuda":
            return _on_device, (value.detach().cpu(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Puts in this executor's own of what is trained."""

    def __init__(self, file: io.BytesIO, trained: _Trained) -> None:
        super().__init__(file)
        self._trained = trained

    @override
    def persistent_load(self, number: Any) -> Any:
        is_variable = isinstance(number, tuple)
        return self._trained.variables.get(Variable(*number)) if is_variable else self._trained.parts[number]


def _on_device(value: torch.Tensor) -> torch.Tensor:
    return value.to(edt_hvd.device())


def _load(callback: Any, name: str, saved: Saved) -> None:
    """Load a state into the object that is there, which others may refer to; without one, set the value."""
    present: Any = callback if name == ITSELF else getattr(callback, name, None)
    if saved.is_state:
        if _is_stateful(present):
            present.load_state_dict(saved.content)
    elif _is_stateful(saved.content) and type(present) is type(saved.content):
        present.load_state_dict(saved.content.state_dict())
    elif isinstance(saved.content, torch.Tensor | np.ndarray):
        setattr(callback, name, refilled(present, saved.content))
    else:
        setattr(callback, name, saved.content)


def _takes(hook: Any, named: Mapping[str, Any]) -> bool:
    parameters = inspect.signature(hook).parameters if named else {}
    return named.keys() <= parameters.keys() or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _is_stateful(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _is_in_log_dir(value: Any) -> bool:
    """Whether it is a path in the folder that this executor alone has; those that join have their own."""
    folder = os.environ.get("LOG_DIR")
    is_path = isinstance(value, str | PurePath) and bool(folder)
    return is_path and Path(os.path.abspath(value)).is_relative_to(os.path.abspath(str(folder)))


def _memory(value: Any) -> int:
    """Where the memory of a tensor, or of an array that views one, begins; 0 if there is none."""
    while isinstance(value, np.ndarray):
        value = value.base
    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.untyped_storage().data_ptr() if dense else 0
