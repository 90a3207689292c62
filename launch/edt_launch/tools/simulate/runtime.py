"""How long a job takes alone, by the number of its workers and of the hosts that they are on."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol


class RunTime(Protocol):
    """A job's run time as a function of what it runs on."""

    @property
    def largest(self) -> int:
        """The largest number of workers that it is known for."""

    def seconds(self, workers: int, hosts: int) -> float:
        """Seconds from start to end on `workers`, 1 to `largest`, spread over `hosts`."""


@dataclass(frozen=True)
class Linear:
    """A job that is n times as fast on n workers. Few are: results that rest on it must say so."""

    gpu_seconds: float
    largest: int

    def seconds(self, workers: int, hosts: int) -> float:  # noqa: D102
        return self.gpu_seconds / workers


@dataclass(frozen=True)
class Measured:
    """Seconds measured by workers, then by hosts; of missing numbers of hosts the nearest one counts."""

    by_shape: Mapping[int, Mapping[int, float]]

    @cached_property
    def largest(self) -> int:  # noqa: D102
        return max(self.by_shape)

    def seconds(self, workers: int, hosts: int) -> float:  # noqa: D102
        row = self.by_shape[workers]
        return row[hosts] if hosts in row else row[min(row, key=lambda known: (abs(known - hosts), known))]


@dataclass(frozen=True)
class Interpolated:
    """Measured at points (workers, seconds), ascending, from one worker on; speed is linear between them."""

    points: tuple[tuple[int, float], ...]

    @cached_property
    def largest(self) -> int:  # noqa: D102
        return self.points[-1][0]

    def seconds(self, workers: int, hosts: int) -> float:  # noqa: D102
        at = bisect_left(self.points, (workers, 0.0))
        more, seconds_with_more = self.points[at]
        if more == workers:
            return seconds_with_more
        fewer, seconds_with_fewer = self.points[at - 1]
        part = (workers - fewer) / (more - fewer)
        return 1 / ((1 - part) / seconds_with_fewer + part / seconds_with_more)


def packed(run_time: RunTime, workers: int, per_host: int) -> float:
    """Seconds alone on `workers`, on as few hosts of `per_host` devices as possible."""
    return run_time.seconds(workers, -(-workers // per_host))


def best(run_time: RunTime, most: int, per_host: int) -> float:
    """Seconds alone on the number of workers, up to `most`, that is fastest."""
    return min(packed(run_time, n, per_host) for n in range(1, min(most, run_time.largest) + 1))


def speedup(run_time: RunTime, most: int, per_host: int) -> tuple[tuple[int, float], ...]:
    """Points (workers, speed relative to one worker), as an allocator would have learned them; packed."""
    one = packed(run_time, 1, per_host)
    return tuple((n, one / packed(run_time, n, per_host)) for n in range(1, most + 1))
