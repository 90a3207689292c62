"""The elastic function: called once this worker is a member of a world, and again in every later one."""

import functools
import os
import time
import warnings
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import horovod.torch as hvd
from horovod.common.elastic import State
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.runner.elastic.worker import HostUpdateResult

from edt_hvd.errors import ResizeInterrupt, StateError
from edt_hvd.initialization import init
from edt_hvd.progress.reporting import ResizeReport
from edt_hvd.reduction import participants
from edt_hvd.returning import call_to_common_end
from edt_hvd.state import TorchState
from edt_hvd.world import stages, world
from edt_hvd.world.elastic_world import ElasticWorld
from edt_hvd.world.stages import Stage

SAME_FAILURES = 3
"""A collective that fails so often, at the same commit of as many workers, is a mistake in the script."""

P = ParamSpec("P")
R = TypeVar("R")
ElasticFunction = Callable[Concatenate[Any, P], R]


def elastic(function: ElasticFunction[P, R]) -> ElasticFunction[P, R]:
    """Make `function(state, ...)` survive changes of the number of workers.

    `state` is an `edt_hvd.TorchState` or any state of Horovod's. The function is called once this worker
    is part of the world and the state is the same everywhere. At a resize every worker leaves the function
    at the same `state.commit()`, and a new world is formed. Then the reset callbacks run, new workers
    receive the state, and the function is called again: it must continue from the position in the state.
    When a worker is lost, the others first go back to the last commit.

    With a TorchState every worker waits at the end until the function has returned on all of them.

    A worker that is no longer needed leaves through `SystemExit(0)`. Under python, mpirun and a static
    horovodrun the world never changes, and the function is called once.

    Raises:
        EarlyReturnError: on every worker, the function has returned on some workers while others train.
        StateError: no worker with the state of the training is left, and there is no checkpoint.
        HorovodInternalError: workers were lost and no new world could be formed; or a collective failed
            repeatedly at the same commit although no worker was lost, for example because the workers call
            it with different shapes.
    """

    @functools.wraps(function)
    def run(state: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        init()
        current = world.current()
        participants.collect_stale()  # takes long after large imports: nobody waits for it here
        if isinstance(current, ElasticWorld):
            return _run(current, function, state, *args, **kwargs)
        state.sync()
        result = call_to_common_end(function, state, *args, **kwargs)
        if isinstance(state, TorchState):
            state.report_progress(time.monotonic(), last=True)
            state.finish()
        return result

    return run  # type: ignore[return-value]  # functools.wraps forgets that `state` is positional


def _run(
    current: ElasticWorld,
    function: ElasticFunction[P, R],
    state: State,
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    current.enter()
    if current.finished and hvd.rank() == 0:
        warnings.warn(
            f"{function.__name__}() is this script's second elastic function: the number of workers stays as "
            "it was at the end of the first",
            stacklevel=3,
        )
    if not isinstance(state, TorchState) and "EDT_CHECKPOINT_DIR" in os.environ and hvd.rank() == 0:
        kind = f"{type(state).__module__}.{type(state).__name__}"
        warnings.warn(
            f"no checkpoints are written of a {kind}: a job that has lost all workers, or is started again, "
            "begins anew; put an edt_hvd.TorchState in its place",
            stacklevel=3,
        )
    current.save_state = lambda: _save(state)
    current.on_stop = lambda generation: _announce(state, generation)
    report = ResizeReport.first(current.generation, hvd.size())
    failures = _Failures()
    while True:
        try:
            _sync(current, state, report)
            stages.enter(Stage.OUTSIDE)
            result = call_to_common_end(function, state, *args, **kwargs)
            current.finish()
            report.send_to(current.launcher, time.monotonic())
            if isinstance(state, TorchState):
                state.report_progress(time.monotonic(), last=True)
                state.finish()
            return result
        except HorovodInternalError:
            if failures.repeated(getattr(state, "progress", None), report.size):
                raise
            current.abandon()
            state.restore()
        except (HostsUpdatedInterrupt, ResizeInterrupt):
            pass
        stopped_at = getattr(state, "committed_at", None) or time.monotonic()
        previous_size = report.last_trained_size
        current.rejoin(progress=getattr(state, "progress", 0))
        report = ResizeReport(current.generation, previous_size, hvd.size(), stopped_at)
        report.mark("drain", current.assigned_at)
        report.mark("rendezvous", time.monotonic())
        participants.reset()
        state.on_reset()


class _Failures:
    """Distinguishes a lost worker from a mistake: after a loss, fewer workers go on, or they get farther."""

    def __init__(self) -> None:
        self._last: tuple[int | None, int] | None = None
        self._count = 0

    def repeated(self, progress: int | None, size: int) -> bool:
        """Whether a failure in a world of that size, after so many commits, is the same again and again."""
        found = (progress, size)
        self._count = self._count + 1 if found == self._last else 1
        self._last = found
        return progress is not None and self._count >= SAME_FAILURES


def _sync(current: ElasticWorld, state: State, report: ResizeReport) -> None:
    if isinstance(state, TorchState):  # it enters stages itself
        state.sync()
    else:
        with stages.waiting_for_others():
            state.sync()
    if current.has_lost_state and not getattr(state, "progress", 0):
        raise StateError(
            "all workers that had the training's state left before this one got it; start the job again; "
            "with a folder for checkpoints in EDT_CHECKPOINT_DIR it can go on where it was"
        )
    current.synced()
    report.mark("transfer", time.monotonic())
    if isinstance(state, TorchState):
        state.note_resize(report)
    else:
        report.send_to(current.launcher, time.monotonic())
    if current.wanted_generation > current.generation:  # announced while this worker was not listening
        _announce(state, current.wanted_generation)


def _save(state: State) -> None:
    if isinstance(state, TorchState):
        state.save_to_disk()


def _announce(state: State, generation: int) -> None:
    """Put the announced membership where Horovod's own states look for it."""
    state.on_hosts_updated(generation, HostUpdateResult.added)
