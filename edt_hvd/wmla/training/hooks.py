"""The program's own callbacks in an executor, and what of them belongs to the training's state.

That is the state of the callbacks, and what their hooks have changed elsewhere: globals of the script and of
the user's own modules, attributes of classes and functions there and of the objects that the program was
given, such as a loss function, and variables of closures. Executors that join have what the driver had when
`train` was called, and are given the rest. All of these are variables here. One that is no callback's counts
as changed by a hook if its pickled form is another after it.
"""

import copy
import inspect
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, cast

import torch

import edt_hvd
from edt_hvd.refilling import is_shareable, refilled
from edt_hvd.wmla.training.part_pickling import DigestFile, PartPickler, PartUnpickler, ViewError, memory_of
from edt_hvd.wmla.training.variables import Variable, Variables, is_stateful


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
        self._variables = Variables(self._callbacks, objects, self._is_part)
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
        self._made = frozenset(each for each, value in self._variables.of_callbacks() if is_stateful(value))
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
        saved: State = PartUnpickler(io.BytesIO(self._state), self._present).load()
        for each in self._before.keys() - saved.keys() - self._own:
            value, digest = self._before.pop(each)
            if digest is None or self._digest(value, self._dump()) != digest:
                raise edt_hvd.StateError(
                    f"{self._variables.name_of(each)} was changed in place by a callback since the last "
                    "commit, so it cannot be taken back after the loss of an executor; set the variable to "
                    "a new value instead"
                )
            self._variables.write(each, value)
        for each, (content, is_state) in saved.items():
            present = self._variables.read(each)
            if not self._variables.is_of_callback(each):
                self._before.setdefault(each, (present, None))
            if is_state:
                if is_stateful(present):
                    present.load_state_dict(content)
            elif is_stateful(content) and type(present) is type(content):
                present.load_state_dict(content.state_dict())
            else:
                self._variables.write(each, refilled(present, content))

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
        for each, value in self._variables.of_callbacks():
            is_state = not each.name or (not whole and each in self._made and is_stateful(value))
            if each not in self._own:
                yield each, Saved(value.state_dict() if is_state else value, is_state)
        present = dict(self._variables.others())
        for each in self._before:
            if each in present and each not in self._own:
                yield each, Saved(present[each], is_state=False)

    def _leave_out(self, each: Variable, state: State, whole: bool) -> None:
        """Leave what cannot be pickled to each executor, from now on."""
        try:
            self._dumps({each: state[each]})
        except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
            content = state.pop(each).content
            if whole and is_stateful(content):
                state[each] = Saved(content.state_dict(), is_state=True)
                return
            self._own.add(each)
            if not isinstance(error, ViewError):
                warnings.warn(
                    f"{self._variables.name_of(each)} cannot be pickled ({error}), so executors that join "
                    "later do not get it: give the callback state_dict and load_state_dict if the training "
                    "depends on it",
                    stacklevel=2,
                )

    def _digests(self) -> dict[Variable, tuple[Any, bytes | None]]:
        """The values of all variables that are no callback's, and their digests."""
        dump = self._dump()
        return {each: (value, self._digest(value, dump)) for each, value in self._variables.others()}

    def _digest(self, value: Any, dump: Dump) -> bytes | None:
        """A digest of the pickled value; None if it cannot be pickled, or comes in another way."""
        if self._is_part(value):
            return None
        file = DigestFile()
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
        memory = memory_of([*self._model.parameters(), *self._model.buffers(), *tensors])
        shared = {id(value): each for each, value in self._variables.others() if is_shareable(value)}

        references: dict[int, int | Variable] = {**shared, **self._numbers}

        def dump(value: Any, file: IO[bytes]) -> None:
            PartPickler(file, references, memory).dump(value)

        return dump

    def _is_part(self, value: Any) -> bool:
        return id(value) in self._numbers

    def _present(self, reference: Any) -> Any:
        """What a pickle refers to: a part, or the value of a variable."""
        if isinstance(reference, int):
            return self._parts[reference]
        return self._variables.read(Variable(*reference))


def _unshared(value: Any) -> Any:
    """What is pickled of a variable itself, where others refer to it by name."""
    return copy.copy(value) if is_shareable(value) else value


def _takes(hook: Any, named: Mapping[str, Any]) -> bool:
    parameters = inspect.signature(hook).parameters if named else {}
    return named.keys() <= parameters.keys() or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
