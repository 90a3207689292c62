"""The metric of a trial: what its program has written to `val_dict_list.json`.

The file is the trial's own; whatever is in it, or in its place, costs that trial its metric and nothing else.
"""

import json
import math
from pathlib import Path

from edt_launch.core import plain_files
from edt_launch.jobs.experiments.decide import Outcome
from edt_launch.service.experiment_spec import Objective

FILE = "val_dict_list.json"
MOST = 16 * 2**20


def read(folder: Path, name: str, objective: Objective) -> Outcome:
    """The best value of the metric `name` in the file of a trial's result folder."""
    try:
        content = plain_files.read(folder / FILE, MOST + 1)
    except FileNotFoundError:
        return Outcome(reason=f"the program has not written {FILE} into $RESULT_DIR")
    except OSError as error:
        return Outcome(reason=f"{FILE} cannot be read: {error.strerror}")
    return find(content, name, objective)


def find(content: bytes, name: str, objective: Objective) -> Outcome:
    """The same from the file's content."""
    if len(content) > MOST:
        return Outcome(reason=f"{FILE} has more than {MOST:,} bytes")
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        return Outcome(reason=f"{FILE} is no JSON: {error}")
    if not isinstance(entries, list):
        return Outcome(reason=f"{FILE} is no list of objects like {{'steps': 1, {name!r}: 0.5}}")
    values = [entry[name] for entry in entries if isinstance(entry, dict) and name in entry]
    numbers = [number for number in map(_number, values) if number is not None]
    if not numbers:
        kind = "is no finite number there" if values else "is not in it"
        return Outcome(reason=f"{FILE}: the metric {name!r} {kind}")
    return Outcome(min(numbers, key=lambda number: objective.sign * number))


def _number(given: object) -> float | None:
    """A finite number, which may be a text, as in definitions; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None
