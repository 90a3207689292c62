"""Small traces and clusters for the tests of the simulator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.allocator.model import HostDevices
from edt_launch.tools.simulate.replay import Live
from edt_launch.tools.simulate.runtime import Linear
from edt_launch.tools.simulate.trace import Trace, TraceJob

TRACES = Path(__file__).parents[4] / "benchmarks" / "traces"
HEADER = "job_id,submit_time_s,user,gpus_requested,gpus_min,gpus_max,service_gpu_s"


def job(
    name: str, submitted: float = 0.0, gpus: int = 1, gpu_seconds: float = 100.0, **more: object
) -> TraceJob:
    """A job that is n times as fast on n GPUs, and requests `gpus`."""
    fields = {"user": "ada", "requested": gpus, "min": 1, "max": 8, "run_time": Linear(gpu_seconds, 8)}
    return TraceJob(name, submitted, **(fields | more))  # type: ignore[arg-type]


def trace(*jobs: TraceJob, has_priorities: bool = False) -> Trace:
    """A trace of these jobs."""
    return Trace("small", tuple(sorted(jobs, key=lambda job: job.submitted)), (), has_priorities)


def devices(*counts: int) -> tuple[HostDevices, ...]:
    """The first devices of the first hosts."""
    return tuple(
        HostDevices(f"node{i:04d}", tuple(str(d) for d in range(count)))
        for i, count in enumerate(counts)
        if count
    )


@dataclass
class Scripted:
    """A policy that does what a function of the time says, and records what it was shown."""

    script: Callable[[float], Mapping[str, tuple[HostDevices, ...]]]
    seen: list[tuple[float, tuple[Live, ...]]] = field(default_factory=list)
    name: str = "scripted"

    def decide(self, now: float, live: Sequence[Live]) -> Mapping[str, tuple[HostDevices, ...]]:
        """See `Policy`."""
        self.seen.append((now, tuple(live)))
        return self.script(now)
