"""What the form shows by which a search is started."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.records import DefinitionRecord
from edt_launch.service.experiments.searches.spec import Algorithm, Objective
from edt_launch.service.web.asking import Field
from edt_launch.service.web.crumbs import EXPERIMENTS, Crumb

ROWS, MAX_ROWS = 6, 64
"""Rows for parameters that the form has at least and at most."""

KINDS: Mapping[str, str] = {
    "values": "a list of values",
    "float": "a number from … to …",
    "int": "a whole number from … to …",
    "powers": "a number from 10^… to 10^… (log scale)",
}
"""What a parameter is chosen from."""

LABELS: Mapping[str, str] = {
    "name": "Name",
    "command": "Command; {rate} stands for the parameter rate",
    "code_of": "Or the files of your job (id)",
    "source": "Data folder",
    "metric": "Metric that the script reports",
    "objective": "Goal",
    "algorithm": "Algorithm",
    "max_trials": "Maximum trials",
    "max_parallel": "Parallel trials",
    "max_minutes": "Maximum minutes (empty: no limit)",
    "max_budget": "Maximum budget (hyperband)",
    "seed": "Seed (empty: any)",
    "min": "Minimum workers of a trial",
    "max": "Maximum workers of a trial",
    "priority": "Priority (higher first)",
}

FIRST: Mapping[str, str] = {
    "objective": "minimize", "algorithm": "random", "max_trials": "20", "max_parallel": "2", "min": "1",
    "max": "1", "priority": "0",
}  # fmt: skip
"""What the form begins with."""

UNSENT: Mapping[str, str] = {
    "objective": "minimize", "algorithm": "random", "max_parallel": "1", "min": "1", "max": "1",
    "priority": "0",
}  # fmt: skip
"""What stands for fields that are not sent."""

TEXTS = frozenset({"name", "command", "code_of", "source", "metric"})
REQUIRED = frozenset({"command", "metric"})

OPTIONS: Mapping[str, Sequence[tuple[str, str]]] = {
    "objective": [(str(one), str(one)) for one in Objective],
    "algorithm": [(str(one), str(one)) for one in Algorithm if one is not Algorithm.LIST],
}


@dataclass(frozen=True)
class Row:
    """A parameter, as it was written."""

    name: str = ""
    kind: str = "values"
    values: str = ""
    low: str = ""
    high: str = ""
    step: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written in it."""
        return not (self.name or self.values or self.low or self.high or self.step)

    def range(self) -> dict[str, Any]:
        """What it is chosen from, like `search_spec.Parameter`; raises `InvalidError`."""
        if self.kind == "values":
            if not self.values:
                raise InvalidError(
                    f"parameters: {self.name}: there are no values", "write some with commas between"
                )
            return {"values": [_value(text.strip()) for text in self.values.split(",")]}
        ends = {"min": self._number("low", self.low), "max": self._number("high", self.high)}
        step = {"step": self._number("step", self.step)} if self.step else {}
        match self.kind:
            case "int":
                return {"type": "int", **ends, **step}
            case "powers":
                return {"type": "float", **ends, **step, "base": 10}
            case "float":
                return {"type": "float", **ends, **step}
        raise InvalidError(
            f"parameters: {self.name}: {self.kind!r} is no way to choose", f"use one of {', '.join(KINDS)}"
        )

    def _number(self, field: str, text: str) -> float:
        value = _value(text)
        if isinstance(value, str):
            raise InvalidError(f"parameters: {self.name}: {field}: {text!r} is no number", "write one")
        return value


def parameters(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """What parameters are chosen from, by their names; empty rows are left out.

    Raises:
        InvalidError: a row has no name, or that of another one, or makes no sense.
    """
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    for place, row in enumerate(rows, 1):
        if row.is_empty:
            continue
        if not row.name:
            raise InvalidError(f"parameters: row {place} has no name", "write one, or empty the row")
        if row.name in places:
            raise InvalidError(
                f"parameters: rows {places[row.name]} and {place} are both called {row.name!r}",
                "give one of them another name, or empty it",
            )
        places[row.name] = place
        found[row.name] = row.range()
    return found


def _value(text: str) -> float | str:
    """A number if it is one; JSON's true, null and the like are texts, too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


@dataclass(frozen=True)
class NewSearch:
    """The form: fields before the file, between it and the parameters, and after these.

    `key` is of the search that it starts, `definition` the training definition that trials are runs of, if
    they are; `filled` rows have a parameter, and one more is shown unless somebody adds another.
    """

    key: str
    before: Sequence[Field]
    job: Sequence[Field]
    search: Sequence[Field]
    rows: Sequence[Row]
    filled: int
    kinds: Mapping[str, str]
    definition: DefinitionRecord | None
    error: str = ""
    above: Sequence[Crumb] = (EXPERIMENTS,)


def new_search(
    key: str,
    given: Mapping[str, str],
    rows: Sequence[Row] = (),
    definition: DefinitionRecord | None = None,
) -> NewSearch:
    """The form with what it was sent with."""
    values = {**FIRST, **given}
    fields = {
        name: Field(
            name, label, values.get(name, ""), name not in TEXTS, OPTIONS.get(name, ()), "", name in REQUIRED
        )
        for name, label in LABELS.items()
    }
    source = fields.pop("source")
    own = ("code_of", "min", "max", "priority")
    used = max((place for place, row in enumerate(rows, 1) if not row.is_empty), default=0)
    shown = min(max(ROWS, used + 1), MAX_ROWS)
    return NewSearch(
        key,
        [fields.pop("name"), fields.pop("command"), *([source] if definition else [])],
        [fields.pop(name) for name in own],
        list(fields.values()),
        [*rows[:used], *[Row()] * (shown - used)],
        used,
        KINDS,
        definition,
    )
