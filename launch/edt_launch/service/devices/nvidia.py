"""The GPUs of this machine, as NVIDIA's driver knows them."""

import contextlib
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from edt_launch.devices import visible
from edt_launch.hosts import LOCAL
from edt_launch.service.devices.sources import DevicesError, HostDevices, Surroundings


class Driver(Protocol):
    """What is asked of NVIDIA's driver."""

    def gpus(self) -> tuple[str, ...]:
        """Indices of the GPUs that work.

        Raises:
            DevicesError: the driver does not answer.
        """


class Nvml:
    """The driver itself, through nvidia-ml-py."""

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
