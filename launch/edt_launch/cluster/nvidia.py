"""The GPUs of this machine, as NVIDIA's driver knows them."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from edt_launch.cluster.devices import visible
from edt_launch.cluster.sources import DevicesError, HostDevices, Surroundings
from edt_launch.cluster.static_hosts import LOCAL


class Driver(Protocol):
    """What is asked of NVIDIA's driver."""

    def gpus(self) -> tuple[str, ...]:
        """Indices of the GPUs that work.

        Raises:
            DevicesError: the driver does not answer.
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
            raise DevicesError(f"NVIDIA's driver does not answer: {error}") from None
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
class Nvidia:
    """This machine's GPUs, those that CUDA_VISIBLE_DEVICES names if it is set."""

    name: ClassVar[str] = "nvidia"
    driver: Driver
    variable: str | None = None

    @classmethod
    def detect(cls, around: Surroundings) -> Self | None:
        """If there is a GPU."""
        source = cls(Nvml(), around.environment.get("CUDA_VISIBLE_DEVICES"))
        try:
            return source if source.hosts()[0].devices else None
        except DevicesError:
            return None

    def hosts(self) -> tuple[HostDevices, ...]:
        """This machine."""
        return (HostDevices(LOCAL, visible(self.driver.gpus(), self.variable)),)
