"""Collectives over the workers of the present world, for values that are neither gradients nor metrics.

Every worker must call them in the same order, inside the elastic function and between two commits, where the
workers stay the same. Before the elastic function they raise a RuntimeError under edt-launch and an elastic
horovodrun. The loss of a worker is handled as in any other collective. Values are pickled by cloudpickle and
sent to the job's own workers only.
"""

import pickle
from dataclasses import dataclass
from typing import Any, TypeVar

import cloudpickle
import horovod.torch as hvd
import numpy as np
import torch
from numpy.typing import NDArray

from edt_hvd.reduction import header
from edt_hvd.world import stages, world

T = TypeVar("T")

MAX_BYTES = 2**31 - 2**16
"""Bytes of a pickled value, at most: Horovod counts them in 32 bits, with what is around them."""

_CALLS = tuple(f"edt_hvd.{name}()" for name in ("gather", "broadcast", "barrier", "average", "Mean.compute"))
_ROW = [("call", np.int64), ("root", np.int64), ("nbytes", np.int64)]


def begin(call: str, root: int = 0, nbytes: int = 0) -> NDArray[np.void]:
    """Make sure that all workers call the same collective.

    Args:
        call: its name, one of `_CALLS`.
        root: rank of the worker whose value is meant.
        nbytes: of this worker's value.

    Returns:
        The workers' rows, with `root` and `nbytes`.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join; or, on every worker, they
            call different collectives.
    """
    world.check_collective(call)
    with stages.calling(call):
        rows = header.gather(np.array([(_CALLS.index(call), root, nbytes)], dtype=_ROW), "edt.collective")
    if (rows["call"] != rows["call"][0]).any():
        calls = ", ".join(f"{_CALLS[number]} on rank {rank}" for rank, number in enumerate(rows["call"]))
        raise RuntimeError(
            f"the workers call different collectives: {calls}; call the same ones on all of them, in the "
            "same order"
        )
    return rows


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
        if len(data) > MAX_BYTES:
            return cls(b"", f"a {type(value).__name__} takes {len(data)} bytes, {MAX_BYTES} are allowed")
        return cls(data)

    def value(self, call: str, rank: int) -> Any:
        if self.failure is not None:
            raise ValueError(f"{call}: the value of worker {rank}, {self.failure}; give plain values")
        try:
            return pickle.loads(self.data)
        except Exception as error:
            raise ValueError(
                f"{call}: the value of worker {rank} cannot be unpickled: {type(error).__name__}: {error}; "
                "give plain values"
            ) from error

    def sent(self) -> torch.Tensor:
        """All of it as bytes."""
        return torch.frombuffer(bytearray(pickle.dumps(self)), dtype=torch.uint8)


def _received(data: torch.Tensor) -> _Pickled:
    found = pickle.loads(data.numpy().tobytes())
    assert isinstance(found, _Pickled)
    return found


def gather(value: T) -> list[T]:
    """Return the values of all workers, on every worker.

    Args:
        value: this worker's value; anything that can be pickled. Tensors keep their devices.

    Returns:
        `size()` values in the order of ranks.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join; or, on every worker, they
            call different collectives.
        ValueError: on every worker, a value cannot be pickled, or all values together take 2 GiB.
    """
    found = [_Pickled.of(value)]  # a single worker's, too: what works with one works with many
    own = found[0].sent()
    rows = begin("edt_hvd.gather()", nbytes=len(own))
    if (total := int(rows["nbytes"].sum())) > MAX_BYTES:
        raise ValueError(
            f"edt_hvd.gather(): the values of {len(rows)} workers take {total} bytes, {MAX_BYTES} are "
            "allowed; gather smaller ones, or write them to files"
        )
    if len(rows) > 1:
        with stages.waiting_for_others():
            data = hvd.allgather(own, name="edt.gather")
        found = [_received(part) for part in data.split(rows["nbytes"].tolist())]
    return [pickled.value("edt_hvd.gather()", rank) for rank, pickled in enumerate(found)]


def broadcast(value: T, root: int = 0) -> T:
    """Return the value of worker `root` on every worker.

    Args:
        value: anything that can be pickled; ignored on the other workers.
        root: rank of that worker, from 0 to `size() - 1`.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join; or, on every worker, they
            call different collectives.
        TypeError: `root` is no integer.
        ValueError: there is no worker of that rank; or, on every worker, the workers name different ranks,
            or the value cannot be pickled or takes 2 GiB.
    """
    world.check_collective("edt_hvd.broadcast()")
    if isinstance(root, bool) or not hasattr(root, "__index__"):
        raise TypeError(f"broadcast: root={root!r} is a {type(root).__name__}; give a rank, which is an int")
    if not 0 <= root < world.size():
        raise ValueError(f"broadcast: root={root} is no rank; give one from 0 to {world.size() - 1}")
    is_root = world.rank() == root
    found = _Pickled.of(value) if is_root else _Pickled(b"")
    own = found.sent()
    rows = begin("edt_hvd.broadcast()", int(root), len(own))
    if (rows["root"] != root).any():
        roots = ", ".join(f"root={each} on rank {rank}" for rank, each in enumerate(rows["root"]))
        raise ValueError(f"broadcast: {roots}; every worker has to name the same one")
    if len(rows) > 1:
        data = own if is_root else torch.empty(rows["nbytes"][root], dtype=torch.uint8, device="cpu")
        with stages.waiting_for_others():
            found = _received(hvd.broadcast_(data, int(root), name="edt.broadcast"))
    received: T = found.value("edt_hvd.broadcast()", root)
    return value if is_root else received


def barrier() -> None:
    """Wait until every worker has called it.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: called before the elastic function, where workers may join; or, on every worker, they
            call different collectives.
    """
    begin("edt_hvd.barrier()")
