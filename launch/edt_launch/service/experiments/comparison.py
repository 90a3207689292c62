"""Runs beside each other: what differs in how they were started, and which is the best. Pure functions."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from edt_launch.core.text.masking import masked
from edt_launch.service.experiments.searches.spec import Objective

LOSS = "loss"
LENGTH = "total_steps"
"""Is reported beside values, and says how long a run is."""

MAX_METRICS = 50
"""Values by which runs are compared."""

LOWER = frozenset(
    {"loss", "error", "err", "mse", "rmse", "mae", "nll", "ppl", "perplexity", "wer", "cer", "fid", "bpb"}
    | {"seconds", "time", "distance", "regret"}
)
"""Words in the names of values that are better the lower they are."""

HIGHER = frozenset(
    {"accuracy", "acc", "top", "auc", "auroc", "f", "precision", "recall", "score", "reward", "return"}
    | {"bleu", "rouge", "iou", "miou", "map", "dice", "psnr", "ssim", "throughput"}
)
"""Words in the names of values that are better the higher they are."""


class ComparedParameter(NamedTuple):
    """Something that runs were started with, and what each had; None: nothing."""

    name: str
    values: tuple[str | None, ...]


class Metric(NamedTuple):
    """A value by which runs are compared, and the place of the best one.

    `best` is None for less than two runs with the value, and where nothing says which values are better: a
    learning rate is no worse than another.
    """

    name: str
    objective: Objective
    best: int | None


def objective_of(name: str) -> Objective:
    """Which values of a name are better: a loss the lower, others the higher."""
    return goal_of(name) or Objective.MAXIMIZE


def goal_of(name: str) -> Objective | None:
    """Which values of a name are better, if the name says it."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    if LOWER.intersection(words):
        return Objective.MINIMIZE
    return Objective.MAXIMIZE if HIGHER.intersection(words) else None


def metrics(
    runs: Sequence[Mapping[str, float]], first: str = "", objective: Objective | None = None
) -> list[Metric]:
    """The values that some run has, with the best one each: `first` or the loss, then by name.

    `runs` have their last values by name; `objective` is that of `first`, None: as its name says.
    """
    first = first or LOSS
    return [
        _metric(runs, name, (objective or objective_of(name)) if name == first else goal_of(name))
        for name in names(runs, first)[:MAX_METRICS]
    ]


def names(runs: Sequence[Mapping[str, float]], first: str = "") -> list[str]:
    """Names of all values that some run has: `first` or the loss, then by name."""
    found = {name for run in runs for name in run} - {LENGTH}
    return sorted(found, key=lambda name: (name != (first or LOSS), name))


def _metric(runs: Sequence[Mapping[str, float]], name: str, goal: Objective | None) -> Metric:
    sign = (goal or Objective.MAXIMIZE).sign
    found = [(sign * run[name], place) for place, run in enumerate(runs) if name in run]
    return Metric(name, goal or Objective.MAXIMIZE, min(found)[1] if goal and len(found) > 1 else None)


def of_trial(parameters: Mapping[str, Any]) -> dict[str, str]:
    """What a trial was started with, by name."""
    return {name: str(value) for name, value in parameters.items()}


def parameters(definition: str, code: int, spec: Mapping[str, Any]) -> dict[str, str]:
    """What a run was started with, by name; `spec` is its `specification.JobSpec`.

    Options of its command stand by their names, with or without "=", other words by their places. Values of
    variables and options that are called like secrets are hidden, and passwords in addresses.
    """
    found = {"training definition": definition, "code": str(code or "")}
    found |= {f"${name}": masked(name, value) for name, value in spec.get("environment", {}).items()}
    least, most = spec["min"], spec["max"] or spec["min"]
    found["nodes"] = f"{least}" if least == most else f"{least} to {most}"
    found |= {
        name: str(spec[name]) for name in ("framework", "priority", "data_dir", "directory") if spec.get(name)
    }
    return found | _options(spec["command"])


def differing(runs: Sequence[Mapping[str, str]], most: int | None = None) -> list[ComparedParameter]:
    """The parameters that are not the same in all runs, in the order in which they appear; `most` of them."""
    names = dict.fromkeys(name for run in runs for name in run)
    found = (ComparedParameter(name, tuple(run.get(name) for run in runs)) for name in names)
    return list(islice((one for one in found if len(set(one.values)) > 1), most))


def _options(command: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    place, words = 0, list(command)
    while words:
        word = words.pop(0)
        if not re.match(r"--?[A-Za-z]", word):
            place += 1
            name, value = f"word {place}", word
        elif "=" in word:
            name, _, value = word.partition("=")
        elif words and not re.match(r"--?[A-Za-z]", words[0]):
            name, value = word, words.pop(0)
        else:
            name, value = word, "yes"
        value = masked(name, value)
        found[name] = f"{found[name]} {value}" if name in found else value
    return found
