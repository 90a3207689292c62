"""Which trials a search has, and which of them can start now.

Hyperband's plan has brackets of rungs, as in Li et al., JMLR 18 (2018), algorithm 1. A bracket starts many
configurations with a small budget, and gives the best of them `eta` times as much, again and again, until few
are left that get all. The first bracket is the boldest, the last one is random search.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from edt_launch.service.experiments.records import ExperimentRecord, RunRecord
from edt_launch.service.experiments.searches.choosing import Chooser
from edt_launch.service.experiments.searches.space import Point, grid_point, size, values
from edt_launch.service.experiments.searches.spec import Algorithm, SearchSpec, Values, ranking
from edt_launch.service.names import MAX_NAME

EPSILON = 1e-9
"""What powers of a number that is no integer may be off."""


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

    def run(self, search: ExperimentRecord, id_: str, now: float) -> RunRecord:
        """The trial, before it has a job."""
        return RunRecord(
            id_,
            search.id,
            "",
            f"{search.name}-{self.number}"[:MAX_NAME],
            0,
            "",
            None,
            search.owner,
            now,
            {},
            place=self.number,
            point=self.point,
            parameters=self.parameters,
            budget=self.budget,
        )


@dataclass(frozen=True)
class Slot:
    """A place in Hyperband's plan for one trial.

    Attributes:
        budget: iterations that it may use.
        place: 0 for the best of the rung before.
        before: numbers of the trials of the rung before; empty in a bracket's first rung.
    """

    budget: int
    place: int
    before: range


def total(spec: SearchSpec) -> int:
    """Trials that a search has in all, if none of them fails."""
    match spec.algorithm:
        case Algorithm.GRID:
            return min(spec.most, size(spec.parameters))
        case Algorithm.LIST:
            return min(spec.most, len(spec.configurations))
        case Algorithm.HYPERBAND:
            return sum(1 for _ in _slots(spec))
        case _:
            return spec.most


def following(spec: SearchSpec, seed: int, trials: Sequence[RunRecord]) -> Iterator[Next]:
    """The trials that can start now, in order; each is chosen only when it is asked for.

    Args:
        spec: what is searched how.
        seed: of all that is random.
        trials: those that have been started, by number.
    """
    started = {trial.place: trial for trial in trials}
    if spec.algorithm is Algorithm.HYPERBAND:
        yield from _hyperband(spec, seed, started)
        return
    chooser: Chooser | None = None
    for number in range(total(spec)):
        if number in started:
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


def _hyperband(spec: SearchSpec, seed: int, trials: Mapping[int | None, RunRecord]) -> Iterator[Next]:
    chooser: Chooser | None = None
    void: set[int] = set()  # trials that there will not be: too many of the rung before have failed
    rungs: dict[range, list[RunRecord] | None] = {}  # the best first; None: the rung is not over
    for number, slot in enumerate(_slots(spec)):
        if number in trials:
            continue
        if not slot.before:
            chooser = chooser or Chooser(spec, seed, ())
            point, why = chooser.choose(number), "chosen at random"
        else:
            if slot.before not in rungs:
                rung = [trials.get(earlier) for earlier in slot.before if earlier not in void]
                ended = [trial for trial in rung if trial is not None and trial.has_ended]
                rungs[slot.before] = ranking(spec.objective, ended) if len(ended) == len(rung) else None
            ranked = rungs[slot.before]
            if ranked is None:
                continue
            if slot.place >= len(ranked):
                void.add(number)
                continue
            best = ranked[slot.place]
            point, why = best.point, f"trial {best.place} is number {slot.place + 1} of its rung"
        parameters = {**values(spec.parameters, point), spec.budget: slot.budget}
        yield Next(number, point, parameters, slot.budget, f"{why}; {spec.budget} {slot.budget}")


def _slots(spec: SearchSpec) -> Iterator[Slot]:
    return islice(slots(spec.eta, spec.max_budget or 1), spec.most)


def slots(eta: float, resource: int) -> Iterator[Slot]:
    """Hyperband's plan; a trial's number is its slot's index.

    Args:
        eta: of how many configurations one goes on; more than 1.
        resource: the greatest budget; at least 1.
    """
    boldest = math.floor(math.log(resource, eta) + EPSILON)
    number = 0
    for bracket in range(boldest, -1, -1):
        first = math.ceil((boldest + 1) / (bracket + 1) * eta**bracket - EPSILON)
        before = range(0)
        for rung in range(bracket + 1):
            count = math.floor(first * eta**-rung + EPSILON)
            budget = max(1, math.floor(resource * eta ** (rung - bracket) + EPSILON))
            for place in range(count):
                yield Slot(budget, place, before)
            before = range(number, number + count)
            number += count
