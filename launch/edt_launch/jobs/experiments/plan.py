"""Which trials a search has, and which of them can start now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edt_launch.jobs.experiments.choosing import Chooser
from edt_launch.jobs.experiments.hyperband import Slot, slots
from edt_launch.jobs.experiments.space import Point, grid_point, size, values
from edt_launch.service.database.records import TrialRecord
from edt_launch.service.experiment_spec import Algorithm, Objective, SearchSpec, Values, ranking


@dataclass(frozen=True)
class Next:
    """A trial that can start.

    Attributes:
        number: its place in the search.
        point: its coordinates.
        parameters: their values.
        budget: iterations that it may use; 0 if the algorithm gives none.
        why: why this one.
    """

    number: int
    point: Point
    parameters: Values
    budget: int
    why: str


def total(spec: SearchSpec) -> int:
    """Trials that a search has in all, if none of them fails."""
    match spec.algorithm:
        case Algorithm.GRID:
            return min(spec.most, size(spec.parameters))
        case Algorithm.LIST:
            return min(spec.most, len(spec.configurations))
        case Algorithm.HYPERBAND:
            return len(_slots(spec))
        case _:
            return spec.most


def following(spec: SearchSpec, seed: int, trials: Sequence[TrialRecord]) -> Iterator[Next]:
    """The trials that can start now, in order; each is chosen only when it is asked for.

    Args:
        spec: what is searched how.
        seed: of all that is random.
        trials: those that have been started, by number.
    """
    if spec.algorithm is Algorithm.HYPERBAND:
        yield from _hyperband(spec, seed, {trial.number: trial for trial in trials})
        return
    taken = {trial.number for trial in trials}
    chooser: Chooser | None = None
    for number in range(total(spec)):
        if number in taken:
            continue
        if spec.algorithm is Algorithm.LIST:
            yield Next(number, {}, spec.configurations[number], 0, f"configuration {number}")
            continue
        if spec.algorithm is Algorithm.GRID:
            point = grid_point(spec.parameters, number)
        else:
            chooser = chooser or Chooser(spec, seed, trials)
            point = chooser.choose(number)
        yield Next(number, point, values(spec.parameters, point), 0, f"chosen by {spec.algorithm}")


def _hyperband(spec: SearchSpec, seed: int, trials: Mapping[int, TrialRecord]) -> Iterator[Next]:
    chooser: Chooser | None = None
    rungs = _Rungs(spec.objective, trials)
    for number, slot in enumerate(_slots(spec)):
        if number in trials:
            continue
        if not slot.before:
            chooser = chooser or Chooser(spec, seed, ())
            point, why = chooser.choose(number), "chosen at random"
        else:
            ranked = rungs.ranked(slot.before)
            if ranked is None:
                continue  # its rung is not over
            if slot.place >= len(ranked):
                rungs.void.add(number)
                continue
            best = ranked[slot.place]
            point, why = best.point, f"trial {best.number} is number {slot.place + 1} of its rung"
        parameters = {**values(spec.parameters, point), spec.budget: slot.budget}
        yield Next(number, point, parameters, slot.budget, f"{why}; {spec.budget} {slot.budget}")


class _Rungs:
    """The rungs of a search, and who is the best of each.

    Attributes:
        void: numbers of trials that there will not be: too many of the rung before have failed.
    """

    def __init__(self, objective: Objective, trials: Mapping[int, TrialRecord]) -> None:
        self._objective = objective
        self._trials = trials
        self._ranked: dict[range, list[TrialRecord] | None] = {}
        self.void: set[int] = set()

    def ranked(self, numbers: range) -> list[TrialRecord] | None:
        """The trials of a rung that have a metric, the best first; None while it is not over."""
        if numbers not in self._ranked:
            self._ranked[numbers] = self._rank(numbers)
        return self._ranked[numbers]

    def _rank(self, numbers: range) -> list[TrialRecord] | None:
        there = [self._trials.get(number) for number in numbers if number not in self.void]
        trials = [trial for trial in there if trial is not None and trial.has_ended]
        if len(trials) < len(there):
            return None
        return ranking(self._objective, trials)


def _slots(spec: SearchSpec) -> list[Slot]:
    return slots(spec.eta, spec.max_budget or 1, spec.most)
