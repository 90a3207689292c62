"""How `torch.save` pickles for executors of the same training: members of enumerations are the same there.

Executors have the script's classes by value. A job that goes on after a pause has made them anew, and pickles
from before would bring theirs along.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import cloudpickle


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Has of a member its class and value."""

    def reducer_override(self, value: Any) -> Any:
        """As in `pickle.Pickler`."""
        if isinstance(value, Enum):
            return _member, (type(value), value.value)
        return super().reducer_override(value)


def _member(kind: type[Enum], value: Any) -> Enum:
    """Of the first class of that name."""
    name = (kind.__module__, kind.__qualname__)
    first = next(each for each in _beneath(Enum) if (each.__module__, each.__qualname__) == name)
    return first(value)


def _beneath(kind: type[Enum]) -> Iterator[type[Enum]]:
    for each in kind.__subclasses__():
        yield each
        yield from _beneath(each)
