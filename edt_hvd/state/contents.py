"""The objects and plain values of a state: as a tree, and loaded from one that another process has made."""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch

from edt_hvd.errors import StateError
from edt_hvd.observing import Values
from edt_hvd.reduction import buffers
from edt_hvd.refilling import refilled
from edt_hvd.state import structure
from edt_hvd.state.compatibility import misfits
from edt_hvd.state.snapshot import copied
from edt_hvd.state.state_dicts import is_stateful
from edt_hvd.state.structure_watch import StructureWatch
from edt_hvd.state.tree import companions_of, full_tree, load, of_type
from edt_hvd.world import world


class Contents:
    """The values of a state, which has each as an attribute.

    Args:
        state: referred to weakly, so that it goes with the script's last reference to it.
        values: by name.
        prepare: the script's function that makes the changes of objects during training; see `TorchState`.

    Attributes:
        names: of the values.
    """

    def __init__(self, state: Any, values: Values, prepare: Callable[[Any], object] | None) -> None:
        if prepare is not None and not callable(prepare):
            raise StateError(
                f"prepare= got a {type(prepare).__name__}; it takes a function (see edt_hvd.TorchState), so "
                "choose another name for a value"
            )
        self.names = tuple(values)
        self._state = weakref.ref(state)
        self._prepare = prepare
        self._prepared_for: dict[str, Any] = {}
        """With `prepare`: copies of the plain values as of the last commit, to which the objects belong."""
        self._structure = StructureWatch(values, may_change=prepare is not None)

    def values(self) -> dict[str, Any]:
        """The values that the state has now."""
        state = self._state()
        return {name: getattr(state, name) for name in self.names}

    def tree(self) -> dict[str, Any]:
        """The full tree of the values."""
        return full_tree(self.values()) | self.prepared_tree()

    def prepared_tree(self) -> dict[str, Any]:
        """What a full tree has besides the values: those that `prepare` is to be called with."""
        return {f"{name}{structure.PREPARED}": value for name, value in self._prepared_for.items()}

    def replace(self, values: Values, plain: Mapping[str, Any]) -> None:
        """Have the state consist of these values, the plain ones with other contents."""
        for name, value in values.items():
            setattr(self._state(), name, refilled(value, plain[name]) if name in plain else value)

    def agree(self) -> None:
        """Make what the objects keep besides their states the same on every worker."""
        values = self.values()
        for companion in companions_of(values).values():  # what they say is agreed on in this world, too
            companion.load_state_dict(companion.state_dict())
        for scaler in of_type(values, torch.amp.GradScaler):
            # It comes to life with the first loss it scales, and a worker may have none in its first step.
            scaler.scale(torch.zeros((), device=world.device()))

    # Changes of the objects.

    def check(self, values: Values) -> structure.Fingerprint:
        """As `StructureWatch.check`."""
        return self._structure.check(values)

    def note_structure(self, values: Values, found: structure.Fingerprint) -> bool:
        """Note what the objects are made of now, and follow their buffers; whether that has changed."""
        has_changed = self._structure.note(values, found)
        if has_changed:
            track_buffers(values)
        return has_changed

    def note_commit(self, values: Values) -> None:
        """The objects are what `prepare` has to make of these plain values.

        After the last commit a script counts its epoch on, and makes no objects for an epoch that does not
        come. So these are saved, too, and `prepare` gets them.
        """
        if self._prepare is not None:
            plain = {name: value for name, value in values.items() if not is_stateful(value)}
            self._prepared_for = copied(plain)

    def put_back_parts(self) -> None:
        """Have the objects consist of the parts that they had at the last commit."""
        self._structure.put_back(self.values())

    def prepare(self, tree: Mapping[str, Any]) -> None:
        """Call the script's `prepare`, if there is one, with the plain values of a tree.

        Raises:
            StateError: it has failed.
        """
        if self._prepare is None:
            return
        plain = [name for name in self.names if name in tree and f"{name}{structure.SUFFIX}" not in tree]
        self.note_commit({name: tree.get(f"{name}{structure.PREPARED}", tree[name]) for name in plain})
        try:
            self._prepare(_Prepared(self._state(), copied(self._prepared_for)))
        except Exception as error:
            raise StateError(
                f"the function passed as prepare= failed: {type(error).__name__}: {error}"
            ) from error
        values = self.values()
        self.note_structure(values, structure.fingerprint(values))

    # A tree of another process.

    def take_over(self, tree: Mapping[str, Any], is_first: bool) -> None:
        """Load a tree that another worker has sent.

        Raises:
            StateError: it does not fit this worker's objects.
        """
        try:
            self.load(tree, is_first)
        except StateError as error:
            advice = (
                "make them as the others have them, before the elastic function or, when they changed in it, "
                "in a function passed as TorchState(..., prepare=function)"
                if self._prepare is None
                else "the function passed as prepare= has to make them as the others have them"
            )
            raise StateError(
                f"the state that the other workers have does not fit this worker's objects: {error}; {advice}"
            ) from error

    def load(self, tree: Mapping[str, Any], is_first: bool) -> None:
        """Load a full tree of another process, after `prepare`; its tensors may become those of objects.

        Args:
            tree: to be loaded.
            is_first: the objects are as the script has made them, so that `prepare` has to be called.

        Raises:
            StateError: it does not fit, or an object refuses its state.
        """
        if is_first or misfits(self.values(), tree):
            self.prepare(tree)
        values = self.values()
        before = misfits(values, tree)
        expected = values.keys() | companions_of(values).keys()
        known = {name: saved for name, saved in tree.items() if name in expected}
        try:
            self.replace(values, load(values, known, owned=True))
        except StateError as error:
            raise StateError(before or str(error)) from error
        after = misfits(values, tree)  # some modules take another form when they load
        if after:
            raise StateError(after)
        self.note_structure(values, structure.fingerprint(values))


class _Prepared:
    """What `prepare` is called with: the state, with the plain values that are about to be loaded."""

    def __init__(self, state: Any, values: Mapping[str, Any]) -> None:
        vars(self).update(values, _state=state)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_state"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_state"], name, value)
        vars(self)[name] = value


def track_buffers(values: Values) -> None:
    """Average the buffers of the modules over the micro-batches of a step."""
    for name, value in values.items():
        if isinstance(value, torch.nn.Module):
            buffers.track(value, name)
