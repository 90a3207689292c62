"""The interface of observers, which `edt_hvd.init` registers when the environment asks for them.

They are the recorder and the fault injector of `edt_hvd.debug`. Mostly there are none.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

Values = Mapping[str, Any]
"""The objects and plain values of a state, by name."""


class Observer:
    """Is called at every event, in the order below, and ignores it. A method may raise, or never return."""

    def at_rendezvous(self, generation: int) -> None:
        """This worker has left the world of that generation (0: none) and waits for an assignment."""

    def assigned(self, generation: int, rank: int) -> None:
        """This worker is assigned to the world of that generation, which is about to be formed."""

    def syncing(self) -> None:
        """The world is formed; the workers that do not have the state are about to receive it."""

    def synced(self, state: object, progress: int, values: Values) -> None:
        """The state is the same on every worker; `progress` commits have been made."""

    def loading(self) -> None:
        """The step's first micro-batch, if this worker has one, is about to be loaded."""

    def micro_batch(self, epoch: int, position: int, data: Any) -> contextlib.AbstractContextManager[None]:
        """The context in which a micro-batch is computed; `position` is its first sample's in the epoch."""
        return contextlib.nullcontext()

    def before_backward(self) -> None:
        """The backward pass of the micro-batch is about to begin."""

    def reducing(self) -> None:
        """This worker has computed its micro-batches; the gradients are about to be reduced."""

    def reduced(self, loss: float) -> None:
        """The step's gradients have been reduced; the update follows, up to the commit."""

    def committed(self, state: object, progress: int, values: Values) -> None:
        """The commit of that number has been made."""


_observers: tuple[Observer, ...] = ()


def register(observers: Iterable[Observer]) -> None:
    """Have these observers called from now on, in this order, and no others."""
    global _observers
    _observers = tuple(observers)


def observers() -> tuple[Observer, ...]:
    """The observers of this process."""
    return _observers
