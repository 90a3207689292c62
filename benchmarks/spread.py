"""How the benchmarks print what differs from one pair of measurements to the next."""

from collections.abc import Sequence
from statistics import median


def spread(percent: Sequence[float], signed: bool = False) -> str:
    """Median, quartiles and extremes of percentages; with their signs where they are differences."""
    ordered = sorted(percent)
    quarter = len(ordered) // 4
    form = "+.2f" if signed else ".1f"
    low, high = ordered[quarter], ordered[-1 - quarter]
    return (
        f"median {median(ordered):{form}} %  quartiles {low:{form}} to {high:{form}} %"
        f"  min {ordered[0]:{form}} %  max {ordered[-1]:{form}} %"
    )
