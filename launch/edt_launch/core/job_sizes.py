"""How many workers a job can have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers of workers of a job: bounds, and those between that it can have; None for all."""

    min: int
    max: int | None
    allowed: tuple[int, ...] | None = None
