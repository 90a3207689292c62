"""The GPUs of this machine, as NVIDIA's driver knows them."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from edt_launch.cluster.allocation import DEVICE, HostSlots
from edt_launch.cluster.hosts import LOCAL, HostOptions, HostSource
from edt_launch.core.errors import SourceError


@dataclass(frozen=True)
class Load:
    """How a GPU is used: memory in MiB, and the percentage of time in which it computes."""

    memory: int = 0
    utilization: float = 0.0


class Meter(Protocol):
    """Knows how GPUs are used."""

    def loads(self, names: Iterable[str]) -> Mapping[str, Load]:
        """Those of this machine's GPUs, by index or UUID; what does not answer is left out."""


class Nvml:
    """The driver itself, through nvidia-ml-py."""

    def loads(self, names: Iterable[str]) -> Mapping[str, Load]:
        """How GPUs are used; nothing is known without a driver."""
        loads = {}
        with contextlib.suppress(SourceError), _nvml() as nvml:
            for name in names:
                with contextlib.suppress(nvml.NVMLError):
                    by_index = name.isdecimal()
                    find = nvml.nvmlDeviceGetHandleByIndex if by_index else nvml.nvmlDeviceGetHandleByUUID
                    handle = find(int(name) if by_index else name)
                    used = nvml.nvmlDeviceGetMemoryInfo(handle).used
                    loads[name] = Load(used // 2**20, float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        return loads

    def gpus(self) -> tuple[str, ...]:
        """Indices of the GPUs that answer; one that has fallen off its bus does not.

        Raises:
            SourceError: the driver does not answer.
        """
        gpus = []
        with _nvml() as nvml:
            for index in range(nvml.nvmlDeviceGetCount()):
                with contextlib.suppress(nvml.NVMLError):
                    nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index))
                    gpus.append(str(index))
        return tuple(gpus)


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise SourceError(f"NVIDIA's driver does not answer: {error}") from None
    try:
        yield pynvml
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


@dataclass(frozen=True)
class Nvidia(HostSource):
    """This machine's GPUs, those that CUDA_VISIBLE_DEVICES names if it is set."""

    name: ClassVar[str] = "nvidia"
    oversubscribes: ClassVar[bool] = True
    driver: Nvml
    variable: str | None = None

    def __str__(self) -> str:
        return "this machine's GPUs"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:  # noqa: D102
        source = cls(Nvml(), options.environment.get("CUDA_VISIBLE_DEVICES"))
        try:
            return source if source.hosts()[0].devices else None
        except SourceError:
            return None

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        gpus = visible(self.driver.gpus(), self.variable)
        return (HostSlots(LOCAL, len(gpus), gpus),)


def visible(installed: Sequence[str], variable: str | None) -> tuple[str, ...]:
    """The GPUs that may be used.

    Args:
        installed: indices of the GPUs there are.
        variable: value of CUDA_VISIBLE_DEVICES, None if unset. As for CUDA itself,
            an entry that names no GPU ends the list.
    """
    if variable is None or not installed:
        return tuple(installed)
    names: list[str] = []
    for entry in (entry.strip() for entry in variable.split(",")):
        is_name = entry.startswith(("GPU-", "MIG-")) and re.fullmatch(DEVICE, entry)
        if not (entry in installed or is_name) or entry in names:
            break
        names.append(entry)
    return tuple(names)


def gpus_here(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the GPUs of this machine that may be used; none without a driver that answers."""
    source = Nvidia.detect(HostOptions(environment))
    return () if source is None else source.hosts()[0].devices or ()
