"""Collectives over the workers of the present world, for what belongs to neither gradients nor metrics.

Every worker must call them, in the same order: inside the elastic function between two commits, where the
workers stay the same. If one of them is lost meanwhile, the elastic function's wrapper handles it as in any
other collective. Values are pickled by cloudpickle, and travel among the job's own workers only.
"""

from typing import TypeVar

import horovod.torch as hvd

from edt_hvd.world import stages, world

T = TypeVar("T")


def gather(value: T) -> list[T]:
    """Collect a value of every worker, on every worker.

    Args:
        value: this worker's; anything that can be pickled. Tensors keep their devices.

    Returns:
        The values in the order of ranks; `size()` of them.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if world.size() == 1:
        return [value]
    with stages.waiting_for_others():
        return list(hvd.allgather_object(value, name="edt.gather"))


def broadcast(value: T, root: int = 0) -> T:
    """Give one worker's value to all.

    Args:
        value: anything that can be pickled; only that of worker `root` counts.
        root: rank of the worker whose value it is, from 0 to `size() - 1`.

    Raises:
        NotInitializedError: `init` has not been called.
        ValueError: there is no worker of that rank.
    """
    if not 0 <= root < world.size():
        raise ValueError(f"broadcast: root={root} is no rank; give one from 0 to {world.size() - 1}")
    if world.size() == 1:
        return value
    with stages.waiting_for_others():
        return hvd.broadcast_object(value, root_rank=root, name="edt.broadcast")  # type: ignore[no-any-return]


def barrier() -> None:
    """Wait until every worker has called it.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if world.size() > 1:
        with stages.waiting_for_others():
            hvd.barrier()
