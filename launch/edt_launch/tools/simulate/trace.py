"""Reading traces: a CSV file with a job a line, and tables of measured speed beside it.

Columns: `job_id, submit_time_s, user, gpus_requested, gpus_min, gpus_max`, and one of

* `service_gpu_s` alone: GPU-seconds of the job, whose speed is taken to be linear in its GPUs;
* `app_key`: a key of `apps_fixed_batch.json` beside the trace, which has measured step times;
* `job_type, iso_duration_s`: a key of `throughput_tacc.json` beside the trace, and the seconds that the job
  takes alone on the GPUs that it requested.

`priority` (a whole number, larger is more urgent) and `weight` are optional.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edt_launch.core.errors import TraceError
from edt_launch.core.files.text_files import read_text
from edt_launch.tools.simulate.runtime import Interpolated, Linear, Measured, RunTime

COMMON = ("job_id", "submit_time_s", "user", "gpus_requested", "gpus_min", "gpus_max")
FIXED_BATCH, ADAPTIVE_BATCH = "apps_fixed_batch.json", "apps_adaptive_batch.json"
THROUGHPUT = "throughput_tacc.json"
LARGEST = 10**9
"""What a whole number may be: workers, or a priority."""

LONGEST = 1e9
"""Seconds that a time may be: beyond it, it is no time of a trace (a unix time, or other units)."""


@dataclass(frozen=True)
class TraceJob:
    """A job of a trace.

    Attributes:
        submitted: seconds from the start of the trace.
        requested: workers that it asked for, where it could name one number only.
        min, max: workers that it can do with, and can use.
        priority: larger is more urgent.
        weight: relative to its user's other jobs.
    """

    id: str
    submitted: float
    user: str
    requested: int
    min: int
    max: int
    run_time: RunTime
    priority: int = 0
    weight: float = 1.0


@dataclass(frozen=True)
class Trace:
    """A trace.

    Attributes:
        jobs: in the order of their submission.
        notes: what is assumed or made up about it, for people.
        has_priorities: whether the file says which jobs are more urgent.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    notes: tuple[str, ...]
    has_priorities: bool


@dataclass(frozen=True)
class _Row:
    """One line of the file, that knows how to complain."""

    path: Path
    line: int
    values: Mapping[str, str]

    def error(self, column: str, expected: str) -> TraceError:
        return TraceError(self.path, self.line, f"{column}={self.values[column]}", expected)

    def text(self, column: str) -> str:
        value = self.values[column].strip()
        if not value:
            raise self.error(column, "a name")
        return value

    def number(self, column: str, most: float = math.inf) -> float:
        try:
            value = float(self.values[column])
        except ValueError:
            raise self.error(column, "a number") from None
        if not (math.isfinite(value) and value >= 0):
            raise self.error(column, "a number of at least 0")
        if value > most:
            raise self.error(column, f"a number of at most {most:g}")
        return value

    def positive(self, column: str, most: float = math.inf) -> float:
        value = self.number(column, most)
        if value == 0:
            raise self.error(column, "a number above 0")
        return value

    def whole(self, column: str, least: int) -> int:
        try:
            value = int(self.values[column])
        except ValueError:
            raise self.error(column, "a whole number") from None
        if value < least:
            raise self.error(column, f"at least {least}")
        if value > LARGEST:
            raise self.error(column, f"at most {LARGEST}")
        return value


def read(path: Path, adaptive: bool = False) -> Trace:
    """Read a trace.

    Args:
        path: the CSV file.
        adaptive: take the times of jobs that choose their batch size anew as they are resized, instead of
            those that keep it. `gpus_max`, which is what a fixed batch can use, does not bind them.

    Raises:
        TraceError: the file, or a table beside it, cannot be read or makes no sense.
    """
    rows, columns = _rows(path)
    reader, notes = _models(path, columns, adaptive)
    jobs: dict[str, TraceJob] = {}
    for row in rows:
        job = _job(row, reader(row), columns, adaptive)
        if job.id in jobs:
            raise row.error("job_id", "a name that no line above has")
        jobs[job.id] = job
    if not jobs:
        raise TraceError(path, None, "no jobs", "a job a line below the header")
    start = min(job.submitted for job in jobs.values())
    if start > LONGEST:
        jobs = {job.id: replace(job, submitted=job.submitted - start) for job in jobs.values()}
        notes = (*notes, f"times count from the first submission, {start:.0f} s")
    for row, job in zip(rows, jobs.values(), strict=True):
        if job.submitted > LONGEST:
            raise row.error("submit_time_s", f"seconds, at most {LONGEST:g} after the first submission")
    ordered = tuple(sorted(jobs.values(), key=lambda job: job.submitted))
    return Trace(path.stem, ordered, notes, "priority" in columns)


def _rows(path: Path) -> tuple[list[_Row], frozenset[str]]:
    try:
        with io.StringIO(read_text(path), newline="") as file:
            lines = csv.DictReader(file, strict=True, skipinitialspace=True)
            columns = frozenset(lines.fieldnames or ())
            missing = [column for column in COMMON if column not in columns]
            if missing:
                raise TraceError(
                    path, 1, ",".join(lines.fieldnames or ()), f"a header with {', '.join(missing)}"
                )
            rows = []
            for values in lines:
                if None in values or None in values.values():
                    shown = ",".join(value for value in values.values() if isinstance(value, str))
                    raise TraceError(path, lines.line_num, shown, f"{len(columns)} values, as in the header")
                rows.append(_Row(path, lines.line_num, values))
    except OSError as error:
        raise TraceError(path, None, str(error.strerror), "a trace that can be read") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(path, None, str(error), "CSV in UTF-8") from None
    return rows, columns


def _job(row: _Row, run_time: RunTime, columns: frozenset[str], is_adaptive: bool) -> TraceJob:
    least = row.whole("gpus_min", 1)
    most = row.whole("gpus_max", least)
    if least > run_time.largest:
        raise row.error("gpus_min", f"at most {run_time.largest}, beyond which its speed is not known")
    requested = row.whole("gpus_requested", 1)
    if requested > most:
        raise row.error("gpus_requested", f"at most {most}, its gpus_max")
    if requested > run_time.largest:
        raise row.error("gpus_requested", f"at most {run_time.largest}, beyond which its speed is not known")
    return TraceJob(
        id=row.text("job_id"),
        submitted=row.number("submit_time_s"),
        user=row.text("user"),
        requested=requested,
        min=least,
        max=run_time.largest if is_adaptive else min(most, run_time.largest),
        run_time=run_time,
        priority=row.whole("priority", -1000) if "priority" in columns else 0,
        weight=row.positive("weight") if "weight" in columns else 1.0,
    )


def _models(
    path: Path, columns: frozenset[str], adaptive: bool
) -> tuple[Callable[[_Row], RunTime], tuple[str, ...]]:
    if adaptive and "app_key" not in columns:
        raise TraceError(path, 1, "no app_key", "a trace with an app_key for batch-adaptive jobs")
    if "app_key" in columns and adaptive:
        return _adaptive(path), ("jobs are elastic and choose their batch size anew when they are resized",)
    if "app_key" in columns:
        return _fixed(path), ("jobs are elastic; every job keeps its batch size",)
    if "job_type" in columns and "iso_duration_s" in columns:
        return _throughput(path), (
            "jobs are elastic, with the throughput measured at 1, 2, 4 and 8 GPUs for their first batch size",
            "speed between the measured numbers of GPUs is interpolated",
        )
    if "service_gpu_s" in columns:
        return _linear, ("jobs are elastic; their speed is taken to be linear in their GPUs (synthetic)",)
    shown = ",".join(sorted(columns - set(COMMON)))
    raise TraceError(path, 1, shown, "a header with service_gpu_s, app_key, or job_type and iso_duration_s")


def _linear(row: _Row) -> RunTime:
    return Linear(row.positive("service_gpu_s", LONGEST), row.whole("gpus_max", 1))


def _fixed(path: Path) -> Callable[[_Row], RunTime]:
    apps = _table(path.with_name(FIXED_BATCH))
    models: dict[str, RunTime] = {}

    def read(row: _Row) -> RunTime:
        key = row.values["app_key"]
        if key not in apps:
            raise row.error("app_key", f"a key of {FIXED_BATCH}: {', '.join(sorted(apps))}")
        if key not in models:
            steps, step_time = apps[key]["total_steps"], apps[key]["step_time"]
            models[key] = Measured(
                {
                    int(n): {int(k): steps * t for k, t in by_hosts.items()}
                    for n, by_hosts in step_time.items()
                }
            )
        return models[key]

    return read


def _adaptive(path: Path) -> Callable[[_Row], RunTime]:
    apps = _table(path.with_name(ADAPTIVE_BATCH))

    def read(row: _Row) -> RunTime:
        key = row.values["app_key"].partition(":")[0]
        if key not in apps:
            raise row.error(
                "app_key", f"one that begins with a key of {ADAPTIVE_BATCH}: {', '.join(sorted(apps))}"
            )
        times = apps[key]["time_at_n_gpus_packed"]
        return Interpolated(tuple(sorted((int(n), float(seconds)) for n, seconds in times.items())))

    return read


def _throughput(path: Path) -> Callable[[_Row], RunTime]:
    types = _table(path.with_name(THROUGHPUT))

    def read(row: _Row) -> RunTime:
        kind = row.values["job_type"]
        if kind not in types:
            raise row.error("job_type", f"a key of {THROUGHPUT}")
        speeds = {int(n): float(speed) for n, speed in types[kind].items() if float(speed) > 0}
        requested = row.whole("gpus_requested", 1)
        if 1 not in speeds or requested not in speeds:
            raise row.error("gpus_requested", f"a number that {THROUGHPUT} has for {kind}")
        alone = row.number("iso_duration_s", most=LONGEST)
        return Interpolated(tuple((n, alone * speeds[requested] / speeds[n]) for n in sorted(speeds)))

    return read


def _table(path: Path) -> Mapping[str, Any]:
    try:
        table = json.loads(path.read_bytes())
    except OSError as error:
        raise TraceError(path, None, str(error.strerror), "the table that the trace refers to") from None
    except ValueError as error:
        raise TraceError(path, None, str(error), "JSON") from None
    if not isinstance(table, dict):
        raise TraceError(path, None, type(table).__name__, "a JSON object")
    return table
