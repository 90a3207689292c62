"""The GPUs of this machine, as NVIDIA's driver knows them."""

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from edt_launch.cluster.allocation import DEVICE, HostSlots
from edt_launch.cluster.hosts import LOCAL, HostOptions, HostSource
from edt_launch.core.errors import SourceError


class Driver(Protocol):
    """What is asked of NVIDIA's driver."""

    def gpus(self) -> tuple[str, ...]:
        """Indices of the GPUs that work.

        Raises:
            SourceError: the driver does not answer.
        """


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
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return {}
        try:
            found = {name: self._load(name) for name in names}
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
        return {name: load for name, load in found.items() if load is not None}

    def _load(self, name: str) -> Load | None:
        import pynvml

        try:
            if name.isdecimal():
                handle = pynvml.nvmlDeviceGetHandleByIndex(int(name))
            else:
                handle = pynvml.nvmlDeviceGetHandleByUUID(name)
            used = pynvml.nvmlDeviceGetMemoryInfo(handle).used
            return Load(used // 2**20, float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        except pynvml.NVMLError:
            return None

    def gpus(self) -> tuple[str, ...]:
        """Indices of the GPUs that answer; one that has fallen off its bus does not."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise SourceError(f"NVIDIA's driver does not answer: {error}") from None
        try:
            return tuple(str(index) for index in range(pynvml.nvmlDeviceGetCount()) if self._answers(index))
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()

    def _answers(self, index: int) -> bool:
        import pynvml

        try:
            pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))
        except pynvml.NVMLError:
            return False
        return True


@dataclass(frozen=True)
class Nvidia(HostSource):
    """This machine's GPUs, those that CUDA_VISIBLE_DEVICES names if it is set."""

    name: ClassVar[str] = "nvidia"
    oversubscribes: ClassVar[bool] = True
    driver: Driver
    variable: str | None = None

    def __str__(self) -> str:
        return "this machine's GPUs"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """If there is a GPU."""
        source = cls(Nvml(), options.environment.get("CUDA_VISIBLE_DEVICES"))
        try:
            return source if source.hosts()[0].devices else None
        except SourceError:
            return None

    def hosts(self) -> tuple[HostSlots, ...]:
        """This machine."""
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
