"""What workers use of their host, measured now and then: processors, memory, and their GPUs."""

import contextlib
from collections.abc import Collection, Mapping

import psutil

from edt_launch.agent.protocol import Usage


class UsageMeter:
    """Measures all processes below this one."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._before: Mapping[int, float] = {}

    def measure(self, now: float, gpus: Collection[str]) -> Usage | None:
        """What is used since the last measurement; None for the first one.

        Args:
            now: by a monotonic clock.
            gpus: of the workers, by index or UUID.
        """
        used, memory = dict[int, float](), 0
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error), process.oneshot():  # it may have ended meanwhile
                times = process.cpu_times()
                used[process.pid] = times.user + times.system
                memory += process.memory_info().rss
        before, since = self._before, self._at
        self._before, self._at = used, now
        if since is None or now <= since:
            return None
        seconds = sum(max(0.0, total - before.get(pid, 0.0)) for pid, total in used.items())
        return Usage(seconds / (now - since), memory, *_of_gpus(gpus))


def _of_gpus(names: Collection[str]) -> tuple[float | None, int | None, float | None]:
    if not names:
        return None, None, None
    from edt_launch.cluster.nvidia import Nvml

    loads = Nvml().loads(names).values()
    if not loads:
        return None, None, None
    powers = [load.power for load in loads if load.power is not None]
    memory = 2**20 * sum(load.memory for load in loads)
    return sum(load.utilization for load in loads) / len(loads), memory, sum(powers) if powers else None
