"""Which configuration to try next: optuna's samplers, asked anew each time.

A choice follows from the search's seed, the trial's number and the trials before it alone, so that a service
that was restarted chooses what it would have chosen.
"""

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from edt_launch.service.experiments.records import RunRecord
from edt_launch.service.experiments.searches.space import Point, count
from edt_launch.service.experiments.searches.spec import Algorithm, Parameter, SearchSpec

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

MODELS = frozenset({Algorithm.TPE, Algorithm.BAYESIAN})
"""Those that learn from the trials before."""


class Chooser:
    """Chooses points of a space, after the trials that were `tried` before."""

    def __init__(self, spec: SearchSpec, seed: int, tried: Iterable[RunRecord]) -> None:
        import optuna  # takes a while, and few services search

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spec = spec
        self._seed = seed
        self._distributions = {name: _distribution(axis) for name, axis in spec.parameters.items()}
        pruner = optuna.pruners.NopPruner()
        self._study = optuna.create_study(direction=spec.objective.value, pruner=pruner)
        if spec.algorithm in MODELS:
            self._study.add_trials([self._known(trial) for trial in tried])

    def choose(self, number: int) -> Point:
        """The point for a trial."""
        self._study.sampler = self._sampler(random.Random(f"{self._seed} {number}").getrandbits(32))
        return self._study.ask(self._distributions).params

    def _sampler(self, seed: int) -> "BaseSampler":
        from optuna.samplers import RandomSampler, TPESampler

        if self._spec.algorithm not in MODELS:
            return RandomSampler(seed=seed)
        return TPESampler(
            seed=seed,
            n_startup_trials=self._spec.warm_up,
            n_ei_candidates=self._spec.candidates,
            multivariate=self._spec.algorithm is Algorithm.BAYESIAN,
            constant_liar=True,  # trials that run at the same time try different things
        )

    def _known(self, trial: RunRecord) -> Any:
        from optuna.trial import TrialState, create_trial

        state = TrialState.FAIL if trial.has_ended else TrialState.RUNNING
        return create_trial(
            state=state if trial.metric is None else TrialState.COMPLETE,
            value=trial.metric,
            params=dict(trial.point),
            distributions=self._distributions,
        )


def _distribution(axis: Parameter) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if (number := count(axis)) is None:
        return FloatDistribution(float(axis.min or 0), float(axis.max or 0))
    return CategoricalDistribution(range(number)) if axis.values else IntDistribution(0, number - 1)
