"""Which trials a search has, and which of them can start now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from edt_launch.adapters.wmla.hypersearch.algorithm import UNLIMITED, AlgoDef, Algorithm, Objective
from edt_launch.adapters.wmla.hypersearch.choosing import Chooser
from edt_launch.adapters.wmla.hypersearch.definition import Definition
from edt_launch.adapters.wmla.hypersearch.fields import MOST_TRIALS
from edt_launch.adapters.wmla.hypersearch.hyperband import Slot, slots
from edt_launch.adapters.wmla.hypersearch.space import Point, Values, axes, grid_point, size, values
from edt_launch.service.database.search_records import TrialRecord


@dataclass(frozen=True)
class Next:
    """A trial that can start.

    Attributes:
        number: its place in the search.
        point: its coordinates.
        parameters: its hyperparameters.
        budget: iterations that it may use; 0 if the algorithm gives none.
        why: why this one.
    """

    number: int
    point: Point
    parameters: Values
    budget: int
    why: str


def most(algo: AlgoDef) -> int:
    """Trials that the user allows."""
    return MOST_TRIALS if algo.max_job_num == UNLIMITED else algo.max_job_num


def total(definition: Definition) -> int:
    """Trials that a search has in all, if none of them fails."""
    algo = definition.algo_def
    match algo.algorithm:
        case Algorithm.GRID:
            return min(most(algo), size(axes(definition)))
        case Algorithm.EXPERIMENTS:
            return min(most(algo), len(definition.experiments))
        case Algorithm.HYPERBAND:
            return len(_slots(algo))
        case _:
            return most(algo)


def following(definition: Definition, seed: int, trials: Sequence[TrialRecord]) -> Iterator[Next]:
    """The trials that can start now, in order; each is chosen only when it is asked for.

    Args:
        definition: of the search.
        seed: of all that is random.
        trials: those that have been started, by number.
    """
    algo, taken = definition.algo_def, {trial.number for trial in trials}
    if algo.algorithm is Algorithm.EXPERIMENTS:
        for number in _free(total(definition), taken):
            experiment = definition.experiments[number]
            fixed = {param.name: param.value for param in experiment.hyper_params}
            yield Next(number, {}, fixed, 0, f"experiment {experiment.id}")
    elif algo.algorithm is Algorithm.HYPERBAND:
        yield from _hyperband(definition, seed, {trial.number: trial for trial in trials})
    else:
        space, numbers = axes(definition), _free(total(definition), taken)
        chooser: Chooser | None = None
        for number in numbers:
            if algo.algorithm is Algorithm.GRID:
                point = grid_point(space, number)
            else:
                chooser = chooser or Chooser(algo, space, seed, trials)
                point = chooser.choose(number)
            yield Next(number, point, values(space, point), 0, f"chosen by {algo.algorithm}")


def _hyperband(definition: Definition, seed: int, trials: Mapping[int, TrialRecord]) -> Iterator[Next]:
    algo, space = definition.algo_def, axes(definition)
    resource = algo.resource[0]
    chooser: Chooser | None = None
    rungs = _Rungs(algo.objective, trials)
    for number, slot in enumerate(_slots(algo)):
        if number in trials:
            continue
        if not slot.before:
            chooser = chooser or Chooser(algo, space, seed, ())
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
        parameters = {**values(space, point), resource: slot.budget}
        yield Next(number, point, parameters, slot.budget, f"{why}; {resource} {slot.budget}")


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


def ranking(objective: Objective, trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials that have a metric, the best first; of equal ones the first."""
    with_metric = [(trial.metric, trial) for trial in trials if trial.metric is not None]
    return [trial for _, trial in sorted(with_metric, key=lambda it: (objective.sign * it[0], it[1].number))]


def _free(count: int, taken: set[int]) -> Iterator[int]:
    return (number for number in range(count) if number not in taken)


def _slots(algo: AlgoDef) -> list[Slot]:
    return slots(algo.eta, algo.resource[1], most(algo))
