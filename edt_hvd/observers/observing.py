"""Who is told what a worker does: the recorder of `recording` beside this, and the injector of `faults`.

The environment asks for them. Mostly it asks for neither, and then nobody is told, which costs nothing.
"""

import contextlib
import functools
import os
from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]
"""The objects and plain values of a state, by name."""


class Observer:
    """Is told what happens, in this order, and does nothing about it. Each method may raise or not return."""

    def at_rendezvous(self, generation: int) -> None:
        """This worker has left the world of that generation, 0 if there was none, and waits for a place."""

    def assigned(self, generation: int, rank: int) -> None:
        """This worker has a place in the world of that generation, which is about to be formed."""

    def syncing(self) -> None:
        """The world is there; the state is about to be brought to those that do not have it."""

    def synced(self, state: object, progress: int, values: Values) -> None:
        """The state is the same on every worker; `progress` commits have been made."""

    def loading(self) -> None:
        """The step's first micro-batch, if this worker has one, is about to be loaded."""

    def micro_batch(self, epoch: int, position: int, data: Any) -> contextlib.AbstractContextManager[None]:
        """The context in which a micro-batch is computed, named by its first sample's place in the epoch."""
        return contextlib.nullcontext()

    def before_backward(self) -> None:
        """The backward pass of the micro-batch is about to begin."""

    def reducing(self) -> None:
        """This worker's part of the step is done; its gradients are about to be reduced."""

    def reduced(self, loss: float) -> None:
        """The step's gradients have been reduced; what follows, up to the commit, is the update."""

    def committed(self, state: object, progress: int, values: Values) -> None:
        """The commit of that number has been made."""


@functools.cache
def observers() -> tuple[Observer, ...]:
    """This process's observers.

    Raises:
        ValueError: a variable in the environment makes no sense.
        FaultError: the fault script makes no sense.
    """
    from edt_hvd.observers import faults, recording  # they look at what tells them

    asked = (recording.from_environment(os.environ), faults.from_environment(os.environ))
    return tuple(observer for observer in asked if observer is not None)
