"""Answers about searches: pure functions from what is stored; the schemas pick what is shown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import may
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord, TrialState

Json = dict[str, Any]


def search(
    record: ExperimentRecord,
    counts: Mapping[TrialState, int],
    best: RunRecord | None,
    viewer: UserRecord,
) -> Json:
    """A search, as `viewer` may see it, with the number of trials in each state, and the best one."""
    shown = {**vars(record), "counts": counts, "best": best}
    # The reason may quote a job's private `failure`.
    return shown if may(viewer, record) else {**shown, "reason": None, "best": None}


def search_with_trials(
    record: ExperimentRecord, trials: Sequence[RunRecord], best: RunRecord | None, viewer: UserRecord
) -> Json:
    """A search and its trials, as `viewer` may see them."""
    private: Json = {"trials": trials, "spec": record.generator, "job": record.template}
    shown = private if may(viewer, record) else dict.fromkeys(private)
    return {**search(record, Counter(trial.state for trial in trials), best, viewer), **shown}
