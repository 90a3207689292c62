"""What is due to whom at a moment: weighted max-min fair shares, the yardstick of the share error.

It knows nothing of minimums, of what is remembered and of what runs: it is the same for every policy.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from edt_launch.simulator.trace import TraceJob

Key = TypeVar("Key", bound=Hashable)


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
        demands = {user: float(sum(job.max for job in jobs)) for user, jobs in groups.items()}
        due: dict[str, float] = {}
        for user, part in fill(self._gpus, demands, dict.fromkeys(groups, 1.0)).items():
            jobs = groups[user]
            due |= fill(part, {job.id: float(job.max) for job in jobs}, {job.id: job.weight for job in jobs})
        return due


def fill(total: float, demands: Mapping[Key, float], weights: Mapping[Key, float]) -> dict[Key, float]:
    """Divide `total` by weight: nobody gets more than it demands, nothing is left while somebody wants it."""
    left, weight = total, sum(weights[key] for key in demands)
    shares: dict[Key, float] = {}
    for key in sorted(demands, key=lambda key: demands[key] / weights[key]):
        shares[key] = min(demands[key], left * weights[key] / weight)
        left -= shares[key]
        weight -= weights[key]
    return shares
