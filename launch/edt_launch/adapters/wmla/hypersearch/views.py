"""Searches as WMLA's clients see them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from edt_launch.adapters.wmla.hypersearch.definition import Algorithm
from edt_launch.adapters.wmla.hypersearch.hyperparameters import DataType
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord, SearchState, TrialState
from edt_launch.service.experiments.searches.decide import TIME_OVER
from edt_launch.service.experiments.searches.plan import total
from edt_launch.service.experiments.searches.spec import SearchSpec, ranking

BUILT_IN = "BUILD_IN"
"""The type of an algorithm that comes with the service, in WMLA's spelling."""

SEARCH_STATES: Mapping[SearchState, str] = {
    SearchState.QUEUED: "SUBMITTED",
    SearchState.RUNNING: "RUNNING",
    SearchState.WAITING: "RECOVERPEND",
    SearchState.SUCCEEDED: "FINISHED",
    SearchState.FAILED: "FAILED",
    SearchState.STOPPED: "STOPPED",
}
TRIAL_STATES: Mapping[TrialState, str] = {
    TrialState.QUEUED: "SUBMITTED",
    TrialState.RUNNING: "RUNNING",
    TrialState.SUCCEEDED: "FINISHED",
    TrialState.FAILED: "FAILED",
    TrialState.STOPPED: "KILLED",
}
TYPES: Mapping[type, DataType] = {int: DataType.INT, float: DataType.DOUBLE, str: DataType.STR}


def search(record: ExperimentRecord, trials: Sequence[RunRecord], now: float) -> dict[str, Any]:
    """A search; `reason` is ours, WMLA has none."""
    spec = SearchSpec.model_validate(record.generator)
    count = Counter(trial.state for trial in trials)
    done = count[TrialState.SUCCEEDED] + count[TrialState.FAILED]  # one that was stopped is still to be done
    best = ranking(spec.objective, trials)[:1]
    since = record.started or record.created
    return {
        "hpoName": record.name,
        "state": SEARCH_STATES[record.state],
        "running": count[TrialState.QUEUED] + count[TrialState.RUNNING],
        "complete": count[TrialState.SUCCEEDED],
        "failed": count[TrialState.FAILED],
        "progress": f"{done}/{total(spec)}",
        "createtime": _time(record.created),
        "creator": record.owner,
        "duration": _duration((record.ended or now) - since),
        "experiments": [experiment(trial) for trial in trials],
        "best": experiment(best[0]) if best else None,
        "reason": _reason(record.reason),
    }


def experiment(trial: RunRecord) -> dict[str, Any]:
    """A trial. Its id is its exec's, empty before it is submitted; `number` and `reason` are ours."""
    return {
        "id": trial.exec or "",
        "number": trial.place,
        "appId": trial.exec or "",
        "driverId": trial.driver or "",
        "state": TRIAL_STATES[trial.state],
        "metricVal": trial.metric,
        "hyperParams": [
            {"name": name, "dataType": TYPES[type(value)], "fixedVal": str(value), "userDefined": False}
            for name, value in trial.parameters.items()
        ],
        "startTime": _time(trial.started),
        "endTime": _time(trial.ended),
        "maxiteration": trial.budget,
        "reason": _reason(trial.reason),
    }


def algorithm(name: Algorithm) -> dict[str, Any]:
    """An algorithm."""
    return {"name": name, "type": BUILT_IN, "remoteExec": False}


def _reason(text: str) -> str:
    """A reason, with the limit on time under WMLA's name."""
    return text.replace(TIME_OVER, "maxRunTime is over")


def _time(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _duration(seconds: float) -> str:
    whole = int(max(0.0, round(seconds, 6)))
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
