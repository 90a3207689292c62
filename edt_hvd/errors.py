"""The library's exception tree.

    EdtError
    ├── NotInitializedError    a call that needs `edt_hvd.init()` came before it
    ├── CoordinatorLostError   the launcher went away, or never answered
    ├── WorldSizeError         mpirun has started more processes than Horovod has made a world of
    ├── HorovodBuildError      Horovod was built without what elastic worlds need
    ├── NotElasticError        a script for plain Horovod, under a launcher that cannot run it
    ├── FaultError             a fault script that is invalid, or cannot be followed
    ├── GradientError          gradients that cannot be reduced as they are
    ├── EarlyReturnError       the elastic function has returned on some workers while others train
    ├── CheckpointError        a checkpoint that is damaged; another one is used, so scripts do not see it
    └── StateError             a state or checkpoint that cannot be read or does not match

A resize is a `ResizeInterrupt`, which is no subclass of `Exception`. Invalid arguments raise the built-in
`ValueError` or `TypeError`. Problems that do not stop training are a `NonFiniteGradientWarning` or a
`UserWarning`.
"""

from collections.abc import Sequence


class ResizeInterrupt(BaseException):
    """A new world will be formed; `edt_hvd.elastic` handles it.

    It is no subclass of `Exception`, so that a script's handlers of errors let it through.
    """


class EdtError(Exception):
    """Base class of this library's own errors."""


class NotInitializedError(EdtError):
    """A function of the library was called before `edt_hvd.init()`."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} needs an initialized library; call edt_hvd.init() first")


class CoordinatorLostError(EdtError):
    """The connection to the launcher failed or has ended."""

    def __init__(self, address: str, reason: str, launcher: str = "edt-launch") -> None:
        super().__init__(
            f"no connection to the launcher at {address}: {reason}; "
            f"is {launcher} still running, and is the port reachable from this host?"
        )


class WorldSizeError(EdtError):
    """The size of Horovod's world differs from the number of processes that MPI has started."""

    def __init__(self, variable: str, expected: str, size: int) -> None:
        super().__init__(
            f"Horovod has made a world of {size} where {variable}={expected}: the processes would train "
            "apart; unset HOROVOD_CONTROLLER and HOROVOD_CPU_OPERATIONS, and start them with mpirun of the "
            "MPI that Horovod was built with (`edt doctor` names it)"
        )


class HorovodBuildError(EdtError):
    """Horovod was built without what elastic worlds need."""

    def __init__(self) -> None:
        super().__init__(
            "this Horovod has no horovod_abort_collectives, without which elastic jobs hang when a worker is "
            "lost; build it with EDT's changes: remove ~/.cache/edt/wheels and .venv, then run 'make setup' "
            "(`edt doctor` checks it)"
        )


class NotElasticError(EdtError):
    """A script calls ``hvd.init()`` under edt-launch without using this library."""

    def __init__(self) -> None:
        super().__init__(
            "edt-launch has no world for hvd.init() of plain Horovod; `import edt_hvd` and put "
            "`@edt_hvd.elastic` in place of `@hvd.elastic.run` (docs/how-to/horovod-port.md), or run "
            "the script unchanged with `edt-launch --horovodrun` (docs/how-to/horovodrun.md)"
        )


class FaultError(EdtError):
    """A fault script (`edt_hvd.debug.faults`) is invalid, or cannot be followed in this job."""

    LONGEST = 200
    """Characters of what was found that the message has, at most."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        shown = str(found)
        if len(shown) > self.LONGEST:
            shown = f"{shown[: self.LONGEST]}..."
        super().__init__(f"{where}: found {shown}; expected {expected}")


class GradientError(EdtError):
    """The gradients cannot be reduced."""


class EarlyReturnError(EdtError):
    """The elastic function has returned on some workers while others train."""

    def __init__(self, function: str, returned: Sequence[bool], commits: Sequence[int]) -> None:
        ranks: dict[str, list[int]] = {}
        for rank, (has_returned, count) in enumerate(zip(returned, commits, strict=True)):
            ended = "had returned" if has_returned else "was still training"
            ranks.setdefault(f"{ended} after {count} commits", []).append(rank)
        found = "; ".join(f"on rank {', '.join(map(str, those))} it {how}" for how, those in ranks.items())
        super().__init__(
            f"{function}() has not ended alike on all workers: {found}. Decide when to return by a value "
            "that is the same on all of them, such as step.loss or edt_hvd.average(value), not by the "
            "loss of a worker's own micro-batch"
        )


class CheckpointError(EdtError):
    """A checkpoint is damaged or incomplete."""


class StateError(EdtError):
    """A saved state does not match the object it is loaded into, or cannot be read."""


class NonFiniteGradientWarning(RuntimeWarning):
    """A gradient contains inf or nan. The message names its parameter."""
