"""This machine, where it has no GPUs or is not to use them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self

from typer import Option

from edt_launch.cluster.allocation import Allocation, HostSlots, render
from edt_launch.cluster.hosts import LOCAL, HostOptions, HostSource, without_devices
from edt_launch.core.files.atomic import write_atomically


@dataclass(frozen=True)
class SlotsOptions:
    """The option of `Slots`."""

    slots: Annotated[
        int | None, Option(min=1, max=2**16, help="Run on N slots of this machine; workers see no GPU.")
    ] = None


@dataclass(frozen=True)
class Slots(HostSource):
    """So many slots on this machine as the options say."""

    name: ClassVar[str] = "slots"
    options: ClassVar[type] = SlotsOptions
    count: int

    def __str__(self) -> str:
        return f"--slots {self.count}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:  # noqa: D102
        count = options.of(SlotsOptions).slots
        return None if count is None else cls(count)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        return (without_devices(LOCAL, self.count),)


@dataclass(frozen=True)
class Cores(HostSource):
    """A slot for each processor core that may be used."""

    name: ClassVar[str] = "cores"
    oversubscribes: ClassVar[bool] = True
    count: int

    def __str__(self) -> str:
        return "this machine's cores"

    @classmethod
    def detect(cls, options: HostOptions) -> Self:  # noqa: D102
        is_known = hasattr(os, "sched_getaffinity")
        return cls(len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        return (without_devices(LOCAL, self.count),)


def allocate_here(path: Path, generation: int, size: int, devices: Sequence[str] = ()) -> None:
    """Write an allocation file: `size` slots on this machine, with a device each if there are any.

    Raises:
        OSError: it cannot be written.
    """
    host = HostSlots(LOCAL, size, tuple(devices[:size]) if devices else None)
    write_atomically(path, render(Allocation(generation, (host,))))
