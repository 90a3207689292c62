"""What is due to whom at a moment: weighted max-min fair shares, the yardstick of the share error.

It knows nothing of minimums, of what is remembered and of what runs: it is the same for every policy.
"""

from collections import defaultdict
from collections.abc import Sequence

from edt_launch.allocator.filling import fill
from edt_launch.tools.simulate.trace import TraceJob


class Due:
    """GPUs due to each of the live jobs: to users in equal parts, or to jobs in equal parts if not
    `by_user`."""

    def __init__(self, gpus: int, by_user: bool = True) -> None:
        self._gpus, self._by_user = gpus, by_user

    def __call__(self, live: Sequence[TraceJob]) -> dict[str, float]:
        """Shares by the jobs' ids."""
        groups: defaultdict[str, list[TraceJob]] = defaultdict(list)
        for job in live:
            groups[job.user if self._by_user else ""].append(job)
        users = list(groups.values())
        parts = _divide(self._gpus, [1.0] * len(users), [sum(job.max for job in jobs) for jobs in users])
        due: dict[str, float] = {}
        for jobs, part in zip(users, parts, strict=True):
            shares = _divide(part, [job.weight for job in jobs], [job.max for job in jobs])
            due |= {job.id: share for job, share in zip(jobs, shares, strict=True)}
        return due


def _divide(total: float, weights: Sequence[float], most: Sequence[float]) -> list[float]:
    return fill(total, weights, [0.0] * len(most), most)
