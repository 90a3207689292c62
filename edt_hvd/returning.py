"""The return of the elastic function, after the same commit on every worker.

A worker whose function returns while others train on would leave them to a smaller world, and what follows
the function would run on two coordinators in turn. So it waits in `hvd.join()`, where Horovod fills in zeros
for it, which the others recognize in their next collective (`header.gather`). Then all of them end alike.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import horovod.torch as hvd
import numpy as np

from edt_hvd.errors import EarlyReturnError
from edt_hvd.reduction.header import WorkersReturned, gather
from edt_hvd.state import TorchState
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage

P = ParamSpec("P")
R = TypeVar("R")

_ROW = [("returned", np.int64), ("commits", np.int64)]


def call_to_common_end(
    function: Callable[Concatenate[Any, P], R], state: Any, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Call an elastic function, and wait until it has returned on every worker. A collective.

    With a state of Horovod's own it does not wait: nothing would distinguish zeros from gradients there.

    Raises:
        EarlyReturnError: On every worker; it has returned on some of them only, or after different commits.
    """
    if not isinstance(state, TorchState):
        return function(state, *args, **kwargs)
    result: list[R] = []
    with contextlib.suppress(WorkersReturned):
        result.append(function(state, *args, **kwargs))
        state.note_return()  # a worker may be lost while this one waits for the others
    _check_end(function.__name__, state.progress, has_returned=bool(result))
    return result[0]


def _check_end(name: str, commits: int, has_returned: bool) -> None:
    if hvd.size() == 1:
        return
    stages.enter(Stage.OUTSIDE)  # the coordinator may evaluate and save for as long as it likes
    hvd.join(device=world.device().index if world.device().type == "cuda" else -1)
    with stages.calling("the end of the elastic function"):
        rows = gather(np.array([(has_returned, commits)], dtype=_ROW), "edt.returned")
    if (rows != rows[0]).any():
        raise EarlyReturnError(name, rows["returned"].astype(bool).tolist(), rows["commits"].tolist())
