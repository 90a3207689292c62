"""In executors: modules are imported as in the driver, and given what the script has put into them."""

import contextlib
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from edt_hvd.wmla.handing.finding import Finder
from edt_hvd.wmla.handing.forms import attributes, put
from edt_hvd.wmla.handing.inplace import renew
from edt_hvd.wmla.handing.modules import Change, Given, Start
from edt_hvd.wmla.handing.pickling import Place, at, loads


class Following(Finder):
    """Gives modules what they had in the driver.

    Args:
        folder: the script's.
        given: by the names of modules.
    """

    def __init__(self, folder: str, given: Mapping[str, Given]) -> None:
        super().__init__(folder)
        self._given = given
        self._handed: dict[Place, Any] = {}
        self._present: list[str] = []
        self._makers: list[str] = []
        self._waiting: list[tuple[Place, Change]] = []
        self._is_settling = False

    @contextlib.contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """As in `Finder`."""
        given = self._given.get(name)
        if given is None:
            yield
            return
        present = Start.now()
        outer = self._present[-1] if self._present else None
        given.start.restore()
        self._present.append(name)
        try:
            yield
        finally:
            self._present.pop()
            if outer is None or outer != given.outer:  # who imports it did not find it so in the driver
                present.restore()
        self._change(name, given)
        self._hand_out(name)

    def hand_out(self, handed: Mapping[Place, Any]) -> None:
        """Set these attributes, at once or when their module has been imported."""
        self._handed = dict(handed)
        for name in {module for module, _ in handed if module in sys.modules}:
            self._hand_out(name)

    def _hand_out(self, name: str) -> None:
        for place, value in self._handed.items():
            if place[0] == name:
                _warned(_set, place, value)

    def _change(self, name: str, given: Given) -> None:
        """Change a module at once, but for what others are to change first, or what cannot be made yet."""
        self._makers += given.makers
        for names, change in given.changes.items():
            if change.is_last or not self._is_made((name, names), change):
                self._waiting.append(((name, names), change))
        self._settle()

    def _is_made(self, place: Place, change: Change) -> bool:
        """Whether the change could be made; if not, it refers to modules that are only being imported."""
        try:
            _warned(_apply, place, change)
        except RuntimeError:
            return False
        return True

    def _settle(self) -> None:
        """Make the changes that wait, once nothing is being imported."""
        if self._present or self._is_settling:
            return
        self._is_settling = True
        try:
            while self._makers or self._waiting:
                while self._makers:
                    importlib.import_module(self._makers.pop(0))
                if self._waiting:
                    _warned(_apply, *self._waiting.pop(0))
        finally:
            self._is_settling = False


def _warned(put_there: Callable[[Place, Any], None], place: Place, what: Any) -> None:
    """What has the attribute may be only in the driver, or could not be sent: a warning."""
    try:
        put_there(place, what)
    except LookupError as error:
        warnings.warn(f"{error}; what the script has put there is not in this executor", stacklevel=2)


def _apply(place: Place, change: Change) -> None:
    """Make the change to a module that has been imported.

    Raises:
        LookupError: there is nothing that could have the attribute.
        RuntimeError: what the script has set cannot be had in this process.
    """
    module, names = place
    present = attributes(at((module, names[:-1]))).get(names[-1])
    try:
        value = loads(change.content)
    except Exception as error:  # objects raise what they like when they are made from pickles
        raise RuntimeError(
            f"{'.'.join((module, *names))}, as the script has set it, cannot be made in an executor: {error}"
        ) from error
    if not (change.is_in_place and renew(present, value)):
        _set(place, value)


def _set(place: Place, value: Any) -> None:
    module, (*owners, name) = place
    owner = at((module, tuple(owners)))
    if issubclass(type(owner), type):
        type.__setattr__(owner, name, value)
    elif issubclass(type(owner), ModuleType):
        setattr(owner, name, value)
    else:
        put(owner, name, value)
