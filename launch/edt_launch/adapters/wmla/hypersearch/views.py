"""Searches as WMLA's clients see them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from edt_launch.adapters.wmla.hypersearch.algorithm import Algorithm
from edt_launch.adapters.wmla.hypersearch.definition import Definition
from edt_launch.adapters.wmla.hypersearch.hyperparameters import DataType
from edt_launch.adapters.wmla.hypersearch.plan import ranking, total
from edt_launch.service.database.search_records import SearchRecord, TrialRecord, TrialState

BUILT_IN = "BUILD_IN"
"""The type of an algorithm that comes with the service, in WMLA's spelling."""


def search(record: SearchRecord, trials: Sequence[TrialRecord], now: float) -> dict[str, Any]:
    """A search; `reason` is ours, WMLA has none."""
    definition = Definition.model_validate(record.definition)
    kinds = _kinds(definition)
    count = {state: sum(trial.state is state for trial in trials) for state in TrialState}
    done = count[TrialState.FINISHED] + count[TrialState.FAILED]  # one that was stopped is still to be done
    best = ranking(definition.algo_def.objective, trials)[:1]
    since = record.started or record.created
    return {
        "hpoName": record.name,
        "state": record.state,
        "running": count[TrialState.SUBMITTED] + count[TrialState.RUNNING],
        "complete": count[TrialState.FINISHED],
        "failed": count[TrialState.FAILED],
        "progress": f"{done}/{total(definition)}",
        "createtime": _time(record.created),
        "creator": record.owner,
        "duration": _duration((record.ended or now) - since),
        "experiments": [experiment(trial, kinds) for trial in trials],
        "best": experiment(best[0], kinds) if best else None,
        "reason": record.reason,
    }


def experiment(trial: TrialRecord, kinds: Mapping[str, DataType]) -> dict[str, Any]:
    """A trial. Its id is its exec's, empty before it is submitted; `number` and `reason` are ours."""
    return {
        "id": trial.exec or "",
        "number": trial.number,
        "appId": trial.exec or "",
        "driverId": trial.driver or "",
        "state": trial.state,
        "metricVal": trial.metric,
        "hyperParams": [
            {
                "name": name,
                "dataType": kinds.get(name, DataType.INT),
                "fixedVal": str(value),
                "userDefined": False,
            }
            for name, value in trial.parameters.items()
        ],
        "startTime": _time(trial.started),
        "endTime": _time(trial.ended),
        "maxiteration": trial.budget,
        "reason": trial.reason,
    }


def algorithm(name: Algorithm) -> dict[str, Any]:
    """An algorithm."""
    return {"name": name, "type": BUILT_IN, "remoteExec": False}


def _kinds(definition: Definition) -> dict[str, DataType]:
    """The types of all hyperparameters but a budget, which is an int."""
    kinds = {param.name: param.data_type for param in definition.hyper_params}
    for one in definition.experiments:
        kinds |= {param.name: param.data_type for param in one.hyper_params}
    return kinds


def _time(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _duration(seconds: float) -> str:
    whole = int(timedelta(seconds=max(0.0, seconds)).total_seconds())
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
