"""The job of a trial: a template whose words and variables get the trial's parameters."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.searches.spec import EXACT, Algorithm, Parameter, SearchSpec, Values
from edt_launch.service.jobs.specification import MAX_START, JobSpec, Name
from edt_launch.service.names import MAX_NAME

MAX_PARAMETERS_TEXT = 2**16
"""Bytes of a trial's parameters as JSON."""

LONGEST = -2.2250738585072014e-308
"""No float has more characters."""


VARIABLES = ("EDT_SEARCH", "EDT_TRIAL", "EDT_PARAMETERS")
"""By which a trial finds its search, its number, and its parameters as JSON."""


def job_of(
    template: Mapping[str, Any], search: str, number: int, parameters: Values, text: str = ""
) -> JobSpec:
    """The job of a trial, from the template of all; `text`: its parameters as JSON, if not those.

    Raises:
        InvalidError: with these parameters its command is too long.
        pydantic.ValidationError: with these parameters it is none.
    """
    values = (search, str(number), text or json.dumps(parameters, allow_nan=False))
    ours = dict(zip(VARIABLES, values, strict=True))
    command, left = [], MAX_START
    for word in template["command"]:
        command.append(filled(word, parameters, left))
        left -= len(command[-1])
    return JobSpec.model_validate(
        {
            **template,
            "name": f"{template['name'] or search}-{number}",
            "command": command,
            "environment": {**template["environment"], **ours},
        }
    )


def filled(word: str, parameters: Values, most: int = MAX_START) -> str:
    """A word of a command with values for names in braces; `InvalidError` if it exceeds `most` characters."""
    parts, size = [], 0
    for index, part in enumerate(re.split(r"\{([^{}]+)\}", word)):  # literals and names take turns
        parts.append(str(parameters.get(part, f"{{{part}}}")) if index % 2 else part)
        size += len(parts[-1])
        if size > most:
            raise InvalidError(
                f"command: it has more than {MAX_START:,} characters with its parameters",
                "read long ones from EDT_PARAMETERS, or from a file of the submitted code",
            )
    return "".join(parts)


def check_parameters(spec: SearchSpec) -> None:
    """Raise `InvalidError` unless the parameters of all trials can be kept."""
    size = len(_json(longest(spec, _json)))
    if size > MAX_PARAMETERS_TEXT:
        raise InvalidError(
            f"a trial would have {size:,} bytes of parameters as JSON, with {MAX_PARAMETERS_TEXT:,} at most",
            "put long values into files of the submitted code",
        )


def check_job(spec: SearchSpec, template: JobSpec, name: str) -> None:
    """Raise `InvalidError`, which names the field, unless the trial with the longest parameters has a job."""
    if taken := sorted(template.environment.keys() & set(VARIABLES)):
        raise InvalidError(
            f"job.environment: each trial has a value of {', '.join(taken)} of its own", "leave that out"
        )
    last = spec.most if spec.algorithm is not Algorithm.LIST else min(spec.most, len(spec.configurations))
    try:
        job_of(template.model_dump(), name, last - 1, longest(spec, str), _json(longest(spec, _json)))
    except ValidationError as error:
        one = error.errors()[0]
        where = "".join(f"{part}: " for part in one["loc"])
        said = str(one["msg"]).removeprefix("Value error, ")
        if one["loc"] == ("name",):
            end = f"-{last - 1}"
            said = f"it ends with {end!r}, which leaves {MAX_NAME - len(end)} characters of {MAX_NAME}"
        raise InvalidError(
            f"job: with the name and the parameters of trial {last - 1} it is none: {where}{said}",
            "shorten it, or give fewer max_trials",
        ) from None


def longest(spec: SearchSpec, written: Callable[[Any], str]) -> Values:
    """Parameters that are at least as long as those of every trial, as `written`."""

    def size(value: object) -> int:
        return len(written(value).encode(errors="surrogatepass"))

    if spec.algorithm is Algorithm.LIST:
        return max(spec.configurations, key=lambda one: sum(size(one[name]) + size(name) for name in one))
    values = {name: max(_ends(axis), key=size) for name, axis in spec.parameters.items()}
    if spec.algorithm is Algorithm.HYPERBAND:
        values[spec.budget] = spec.max_budget or 1
    return values


def _ends(axis: Parameter) -> tuple[float | str, ...]:
    """Values of a parameter of which one is the longest."""
    if axis.values:
        return axis.values
    if axis.type == "float":
        return (LONGEST,)
    return (axis.min or 0, axis.max or 0) if axis.base is None else (EXACT,)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


class SubmittedSearch(SearchSpec):
    """A search to create."""

    job: Annotated[
        JobSpec,
        Field(description="What each trial is. `{name}` in a word of its command is that parameter's value."),
    ]
    name: Annotated[Name, Field(description="What to call it; its id by default.")] = ""
