"""Why a job was resized: its pauses, and the decisions that they come of. Pure."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from edt_launch.service.cluster.records import AllocationRecord


def explained(
    pauses: Iterable[Mapping[str, Any]], changes: Iterable[AllocationRecord]
) -> list[dict[str, Any]]:
    """A job's pauses, as `series.Series` gives them, with the reasons of the decisions behind them.

    That is the last decision for this number of workers before the pause ended. Starts anew, and resizes of
    which no decision is known, keep the reason that they have.

    Args:
        pauses: of one job.
        changes: of its allocation, the oldest first.
    """
    decided: defaultdict[int, list[AllocationRecord]] = defaultdict(list)
    for change in changes:
        decided[change.after].append(change)
    found = []
    for pause in pauses:
        known = decided[pause["to"]] if pause["from"] is not None else []
        place = bisect_right(known, pause["end"], key=lambda change: change.time)
        found.append({**pause, **({"reason": known[place - 1].reason} if place else {})})
    return found
