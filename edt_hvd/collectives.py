"""Collectives over the workers of the present world, for what belongs to neither gradients nor metrics.

Every worker must call them, in the same order: inside the elastic function between two commits, where the
workers stay the same. Under edt-launch and an elastic horovodrun they raise a RuntimeError before it. If a
worker is lost meanwhile, the elastic function's wrapper handles it as in any other collective. Values are
pickled by cloudpickle, and travel among the job's own workers only.
"""

import pickle
from dataclasses import dataclass
from typing import Any, TypeVar

import cloudpickle
import horovod.torch as hvd

from edt_hvd.world import stages, world

T = TypeVar("T")

MOST_BYTES = 2**31 - 2**16
"""Bytes of a pickled value, at most: Horovod counts them in 32 bits, with what is around them."""


@dataclass(frozen=True)
class _Pickled:
    """A worker's value, pickled apart from its transfer, so that all workers learn of a failure."""

    data: bytes
    failure: str | None = None

    @classmethod
    def of(cls, value: Any) -> "_Pickled":
        try:
            data = cloudpickle.dumps(value)
        except Exception as error:  # noqa: BLE001 - whatever the value's own methods raise
            return cls(b"", f"a {type(value).__name__} cannot be pickled: {type(error).__name__}: {error}")
        if len(data) > MOST_BYTES:
            return cls(b"", f"a {type(value).__name__} takes {len(data)} bytes, {MOST_BYTES} are allowed")
        return cls(data)

    def value(self, call: str, rank: int) -> Any:
        if self.failure is not None:
            raise ValueError(f"{call}: the value of worker {rank}, {self.failure}; give plain values")
        return pickle.loads(self.data)


def gather(value: T) -> list[T]:
    """Collect a value of every worker, on every worker.

    Args:
        value: this worker's; anything that can be pickled. Tensors keep their devices.

    Returns:
        The values in the order of ranks; `size()` of them.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join.
        ValueError: on every worker, if the value of one cannot be pickled or takes 2 GiB.
    """
    world.check_collective("edt_hvd.gather()")
    found = [_Pickled.of(value)]  # a single worker's, too: what works with one works with many
    if world.size() > 1:
        with stages.waiting_for_others():
            found = hvd.allgather_object(found[0], name="edt.gather")
    return [pickled.value("edt_hvd.gather()", rank) for rank, pickled in enumerate(found)]


def broadcast(value: T, root: int = 0) -> T:
    """Give one worker's value to all.

    Args:
        value: anything that can be pickled; only that of worker `root` counts.
        root: rank of the worker whose value it is, from 0 to `size() - 1`.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join.
        TypeError: `root` is no integer.
        ValueError: there is no worker of that rank; or, on every worker, the value cannot be pickled or takes
            2 GiB.
    """
    world.check_collective("edt_hvd.broadcast()")
    if isinstance(root, bool) or not hasattr(root, "__index__"):
        raise TypeError(f"broadcast: root={root!r} is a {type(root).__name__}; give a rank, which is an int")
    if not 0 <= root < world.size():
        raise ValueError(f"broadcast: root={root} is no rank; give one from 0 to {world.size() - 1}")
    is_root = world.rank() == root
    found: Any = _Pickled.of(value) if is_root else None
    if world.size() > 1:
        with stages.waiting_for_others():
            found = hvd.broadcast_object(found, root_rank=int(root), name="edt.broadcast")
    received: T = found.value("edt_hvd.broadcast()", root)
    return value if is_root else received


def barrier() -> None:
    """Wait until every worker has called it.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join.
    """
    world.check_collective("edt_hvd.barrier()")
    if world.size() > 1:
        with stages.waiting_for_others():
            hvd.barrier()
