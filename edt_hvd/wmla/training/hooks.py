"""The program's own callbacks in an executor, and what of them belongs to the training's state.

That is the state of the callbacks, and what their hooks have changed elsewhere: globals of the script and of
the user's own modules, attributes of classes and functions there and of the objects that the program was
given, such as a loss function, and variables of closures. Executors that join have what the driver had when
`train` was called, and are given the rest. All of these are variables here. One that is no callback's counts
as changed by a hook if its pickled form is another after it.
"""

import copy
import hashlib
import importlib
import inspect
import io
import os
import pickle
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePath
from typing import IO, Any, NamedTuple, cast

import numpy as np
import torch
from typing_extensions import override

import edt_hvd
from edt_hvd.refilling import is_shareable, refilled
from edt_hvd.wmla.pickling.own_modules import is_own

_CLOSURE = " of its closure"
"""Follows the name of a variable that a function shares with others."""


class Variable(NamedTuple):
    """Where a variable is.

    Attributes:
        module: its name; empty for an attribute of a callback or another object of the program.
        owner: the class or function in it whose attribute it is, or the number of the object; may be empty.
        name: its own; empty for a callback that has a `state_dict`.
    """

    module: str
    owner: str
    name: str


class Saved(NamedTuple):
    """What is saved of a variable.

    Attributes:
        content: the value, or its `state_dict`.
        is_state: which of them.
    """

    content: Any
    is_state: bool


State = dict[Variable, Saved]
Dump = Callable[[Any, IO[bytes]], None]


class Hooks:
    """Calls the callbacks' hooks, those that there are.

    A callback's state is its `state_dict()` if it has one, else all of its attributes; of those that had a
    `state_dict` when the training began, such as schedulers, that. It is part of the training's state:
    executors that join are given it, and it goes back with the training after a loss. It is that of the last
    hook: what callbacks change while mini-batches are computed is each executor's own. So are ``params``,
    ``model``, paths in the executor's ``LOG_DIR``, and what cannot be pickled, which a warning names.

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
        self._model, self._optimizer = model, optimizer
        self._objects = (*callbacks, *objects)
        trained = [*model.modules(), *model.parameters(), *model.buffers(), optimizer, *callbacks]
        self._parts = [*trained, *(each for each in objects if is_shareable(each))]
        """What every executor has its own of, whatever refers to it."""
        self._numbers = {id(part): number for number, part in enumerate(self._parts)}
        self._made: frozenset[Variable] = frozenset()
        """Attributes of callbacks that had a `state_dict` when the training began."""
        self._before: dict[Variable, tuple[Any, bytes | None]] = {}
        """Of the variables that hooks have changed: what they were before, and a digest of it."""
        self._own: set[Variable] = set()
        """Those that cannot be pickled."""
        self._state = b""

    def train_begin(self) -> None:
        """Before the state is brought to this executor, so that it counts more than what the hooks change."""
        self._call("on_train_begin")
        # Executors that join have these, since they call that hook, too; any others are given them whole.
        self._made = frozenset(each for each, value in self._of_callbacks() if _is_stateful(value))
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
        if not (hooks := [hook for hook in found if hook is not None]):
            return
        before = self._digests()
        for hook in hooks:
            hook(*arguments, **(named if _takes(hook, named) else {}))
        for each, (value, digest) in self._digests().items():
            was = before.get(each, (None, None))
            if digest is None:  # what cannot be pickled: executors that join call the first hook, too
                is_changed = value is not was[0] and not self._is_part(value) and name != "on_train_begin"
            else:
                is_changed = digest != was[1]
            if is_changed:
                self._before.setdefault(each, was)

    def state_dict(self) -> dict[str, Any]:
        """The state of all callbacks, pickled once after each hook: it is asked for after every step."""
        return {"pickled": self._state}

    def outcome(self) -> dict[str, Any]:
        """The state for callbacks whose hooks are not called: whole objects, where they can be pickled."""
        return {"pickled": self._pickled(whole=True)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, in the objects that are there, which others may refer to.

        Raises:
            StateError: a variable was changed in place after that state, so that it cannot be taken back.
        """
        self._state = state["pickled"]
        saved: State = _Unpickler(io.BytesIO(self._state), self._present).load()
        for each in self._before.keys() - saved.keys() - self._own:
            value, digest = self._before.pop(each)
            if digest is None or self._digest(value, self._dump()) != digest:
                raise edt_hvd.StateError(
                    f"{self._name_of(each)} was changed in place by a callback since the last commit, so it "
                    "cannot be taken back after the loss of an executor; set the variable to a new value "
                    "instead"
                )
            _write(self._owner(each), each.name, value)
        for each, (content, is_state) in saved.items():
            owner = self._owner(each)
            present = _read(owner, each.name)
            if each.module or int(each.owner) >= len(self._callbacks):
                self._before.setdefault(each, (present, None))
            if is_state:
                if _is_stateful(present):
                    present.load_state_dict(content)
            elif _is_stateful(content) and type(present) is type(content):
                present.load_state_dict(content.state_dict())
            else:
                _write(owner, each.name, refilled(present, content))

    # What is saved.

    def _pickled(self, *, whole: bool = False) -> bytes:
        state = dict(self._saved(whole))
        try:
            return self._dumps(state)
        except Exception:  # noqa: BLE001 - objects raise what they like when they are pickled
            for each in list(state):
                self._leave_out(each, state, whole)
            return self._dumps(state)

    def _saved(self, whole: bool) -> Iterator[tuple[Variable, Saved]]:
        for each, value in self._of_callbacks():
            is_state = not each.name or (not whole and each in self._made and _is_stateful(value))
            if each not in self._own:
                yield each, Saved(value.state_dict() if is_state else value, is_state)
        present = dict(self._others())
        for each in self._before:
            if each in present and each not in self._own:
                yield each, Saved(present[each], is_state=False)

    def _leave_out(self, each: Variable, state: State, whole: bool) -> None:
        """Leave what cannot be pickled to each executor, from now on."""
        try:
            self._dumps({each: state[each]})
        except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
            content = state.pop(each).content
            if whole and _is_stateful(content):
                state[each] = Saved(content.state_dict(), is_state=True)
                return
            self._own.add(each)
            if not isinstance(error, _ViewError):
                warnings.warn(
                    f"{self._name_of(each)} cannot be pickled ({error}), so executors that join later do not "
                    "get it: give the callback state_dict and load_state_dict if the training depends on it",
                    stacklevel=2,
                )

    def _digests(self) -> dict[Variable, tuple[Any, bytes | None]]:
        """The values of all variables that are no callback's, and their digests."""
        dump = self._dump()
        return {each: (value, self._digest(value, dump)) for each, value in self._others()}

    def _digest(self, value: Any, dump: Dump) -> bytes | None:
        """A digest of the pickled value; None if it cannot be pickled, or comes in another way."""
        if self._is_part(value):
            return None
        file = _Hash()
        try:
            dump(_unshared(value), cast("IO[bytes]", file))
        except Exception:  # noqa: BLE001 - objects raise what they like when they are pickled
            return None
        return file.digest()

    def _dumps(self, state: State) -> bytes:
        file = io.BytesIO()
        shared = {each: state[each] for each in self._before.keys() & state.keys()}
        own = {each: Saved(_unshared(content), is_state) for each, (content, is_state) in shared.items()}
        self._dump()({**state, **own}, file)
        return file.getvalue()

    def _dump(self) -> Dump:
        """What pickles values without the parts in them, until a variable is set or a tensor made."""
        options = (*self._optimizer.state.values(), *self._optimizer.param_groups)
        tensors = [each for some in options for each in some.values()]
        memory = set(map(_memory, [*self._model.parameters(), *self._model.buffers(), *tensors])) - {0}
        shared = {id(value): each for each, value in self._others() if is_shareable(value)}

        references: dict[int, int | Variable] = {**shared, **self._numbers}

        def dump(value: Any, file: IO[bytes]) -> None:
            _Pickler(file, references, memory).dump(value)

        return dump

    # Where the variables are.

    def _is_part(self, value: Any) -> bool:
        return id(value) in self._numbers

    def _of_callbacks(self) -> Iterator[tuple[Variable, Any]]:
        for number, callback in enumerate(self._callbacks):
            if _is_stateful(callback):
                yield Variable("", str(number), ""), callback
                continue
            for name, value in vars(callback).items():
                if name not in ("params", "model") and not self._is_part(value) and not _is_in_log_dir(value):
                    yield Variable("", str(number), name), value

    def _others(self) -> Iterator[tuple[Variable, Any]]:
        for number in range(len(self._callbacks), len(self._objects)):
            yield from _attributes("", str(number), self._objects[number])
        for name, module in sys.modules.copy().items():
            if name == "__main__" or (is_own(module) and module.__name__ == name):
                yield from _attributes(name, "", module)
                for key, value in list(vars(module).items()):
                    if isinstance(value, type | types.FunctionType) and value.__module__ == name:
                        yield from _attributes(name, key, value)

    def _owner(self, variable: Variable) -> Any:
        if not variable.module:
            return self._objects[int(variable.owner)]
        module = sys.modules.get(variable.module) or importlib.import_module(variable.module)
        return vars(module)[variable.owner] if variable.owner else module

    def _name_of(self, variable: Variable) -> str:
        module, owner, name = variable
        parts = (module, owner, name) if module else (type(self._owner(variable)).__name__, name)
        return ".".join(filter(None, parts))

    def _present(self, reference: Any) -> Any:
        """What a pickle refers to: a part, or the value of a variable."""
        if isinstance(reference, int):
            return self._parts[reference]
        variable = Variable(*reference)
        return _read(self._owner(variable), variable.name)


class _ViewError(pickle.PicklingError):
    """A value views what is trained, which every executor has."""


class _Pickler(pickle.Pickler):
    """Refers to what is trained by number, to variables by name, and takes tensors from their GPU."""

    def __init__(
        self, file: IO[bytes], references: Mapping[int, int | Variable], memory: AbstractSet[int]
    ) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._references, self._memory = references, memory

    @override
    def persistent_id(self, value: Any) -> int | tuple[str, ...] | None:
        found = self._references.get(id(value))
        return tuple(found) if isinstance(found, Variable) else found

    @override
    def reducer_override(self, value: Any) -> Any:
        if _memory(value) in self._memory:
            raise _ViewError
        if isinstance(value, torch.Tensor) and value.device.type == "cuda":
            return _on_device, (value.detach().cpu(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Puts in this executor's own of what is referred to."""

    def __init__(self, file: io.BytesIO, present: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self.persistent_load = present  # type: ignore[method-assign]


class _Hash:
    """A file that keeps a digest of what is written."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.digest, self.write = self._hash.digest, self._hash.update


def _unshared(value: Any) -> Any:
    """What is pickled of a variable itself, where others refer to it by name."""
    return copy.copy(value) if is_shareable(value) else value


def _on_device(value: torch.Tensor) -> torch.Tensor:
    return value.to(edt_hvd.device())


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


def _attributes(module: str, owner: str, holder: Any) -> Iterator[tuple[Variable, Any]]:
    function = getattr(holder, "__func__", holder)
    if isinstance(function, types.FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__" and cell != types.CellType():
                yield Variable(module, owner, name + _CLOSURE), cell.cell_contents
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        is_special = name.startswith("__") and name.endswith("__")
        if not is_special and not isinstance(value, types.ModuleType):
            yield Variable(module, owner, name), value


def _cell(holder: Any, name: str) -> types.CellType:
    function = getattr(holder, "__func__", holder)
    cell: types.CellType = function.__closure__[function.__code__.co_freevars.index(name)]
    return cell


def _read(holder: Any, name: str) -> Any:
    """The present value; None if there is none."""
    if not name.endswith(_CLOSURE):
        return vars(holder).get(name) if name else holder
    cell = _cell(holder, name.removesuffix(_CLOSURE))
    return None if cell == types.CellType() else cell.cell_contents


def _write(holder: Any, name: str, value: Any) -> None:
    if name.endswith(_CLOSURE):
        _cell(holder, name.removesuffix(_CLOSURE)).cell_contents = value
    else:
        setattr(holder, name, value)
