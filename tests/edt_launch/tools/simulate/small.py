"""Small traces and clusters for the tests of the simulator."""

from pathlib import Path

from edt_launch.tools.simulate.runtime import Linear
from edt_launch.tools.simulate.trace import TraceJob

TRACES = Path(__file__).parents[4] / "benchmarks" / "traces"
HEADER = "job_id,submit_time_s,user,gpus_requested,gpus_min,gpus_max,service_gpu_s"


def job(
    name: str, submitted: float = 0.0, gpus: int = 1, gpu_seconds: float = 100.0, **more: object
) -> TraceJob:
    """A job that is n times as fast on n GPUs, and requests `gpus`."""
    fields = {"user": "ada", "requested": gpus, "min": 1, "max": 8, "run_time": Linear(gpu_seconds, 8)}
    return TraceJob(name, submitted, **(fields | more))  # type: ignore[arg-type]
