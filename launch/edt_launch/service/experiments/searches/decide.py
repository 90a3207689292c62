"""What becomes of a search, as a pure function: observed state in, actions out.

Actions are carried out in order, but perhaps not to the end: the next decision sees how far they came, and
goes on from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from edt_launch.service.experiments.records import (
    ExperimentRecord,
    RunRecord,
    SearchState,
    SearchWanted,
    TrialState,
)
from edt_launch.service.experiments.searches.plan import Next, following
from edt_launch.service.experiments.searches.spec import SearchSpec
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted

MINUTE = 60.0

HOPELESS = 20
"""Trials that must all have failed for a search to give up, if it has no limit or none of them had a job."""

TIME_OVER = "its time is over"
"""Reason of a search's end, and of its trials'."""

STARTS = 4
"""Trials that one decision starts at most: wishes, other searches and the service's end come in between."""

STATES: Mapping[State, TrialState] = {
    State.QUEUED: TrialState.QUEUED,
    State.PAUSED: TrialState.QUEUED,
    State.SUCCEEDED: TrialState.SUCCEEDED,
    State.FAILED: TrialState.FAILED,
    State.STOPPED: TrialState.STOPPED,
}
"""A trial's state by its job's; in all others the job runs."""


@dataclass(frozen=True)
class TrialOutcome:
    """What a trial's program has left: a metric, or the reason why there is none."""

    metric: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class TrialFacts:
    """The observed state of a trial.

    Attributes:
        record: as it is stored.
        job: its job, if the trial has not ended; None if it was deleted.
        outcome: what its program has left, once the job has succeeded.
    """

    record: RunRecord
    job: JobRecord | None = None
    outcome: TrialOutcome | None = None


@dataclass(frozen=True)
class StartSearch:
    """The search runs."""


@dataclass(frozen=True)
class UpdateTrial:
    """Write down what has become of a trial."""

    trial: RunRecord


@dataclass(frozen=True)
class StopTrial:
    """Stop a trial's job."""

    trial: RunRecord


@dataclass(frozen=True)
class EndSearch:
    """The search has ended."""

    state: SearchState
    reason: str


Action = Next | StartSearch | UpdateTrial | StopTrial | EndSearch
"""`Next`: start that trial."""


@dataclass(frozen=True)
class Decided:
    """What to do, and when to look again even if nothing happens."""

    actions: tuple[Action, ...]
    again_at: float | None = None


def decide(now: float, search: ExperimentRecord, spec: SearchSpec, facts: Sequence[TrialFacts]) -> Decided:
    """What to do now for a search that has not ended; `facts` are its trials, by number."""
    limit, started = spec.max_minutes, search.started
    over_at = None if limit is None or started is None else started + limit * MINUTE
    closing = None if search.wanted is SearchWanted.RUN else "stopped by its owner"
    if closing is None and over_at is not None and now >= over_at:
        closing = TIME_OVER
    trials = [seen(now, trial, closing) for trial in facts]
    notes = [UpdateTrial(trial) for trial, known in zip(trials, facts, strict=True) if trial != known.record]
    if closing is not None:
        wanted = {known.record.place: known.job for known in facts}
        return Decided((*notes, *_close(now, search, closing, trials, wanted)))
    live = [trial for trial in trials if not trial.has_ended]
    room = 0 if _is_hopeless(spec, trials) else max(0, spec.max_parallel - len(live))
    # One more, if there is more to start.
    actions = list(islice(following(spec, search.seed, trials), min(room, STARTS + 1)))
    if not live and not actions:
        return Decided((*notes, _result(trials)))
    is_known = search.state is SearchState.RUNNING and search.total is not None  # not in earlier versions
    begun = [] if is_known else [StartSearch()]
    return Decided((*notes, *actions[:STARTS], *begun), now if len(actions) > STARTS else over_at)


def seen(now: float, facts: TrialFacts, closing: str | None = None) -> RunRecord:
    """A trial, as it should be written down; `closing` is why its search stops it, if so."""
    trial, job = facts.record, facts.job
    if trial.has_ended:
        return trial
    if job is None:
        return replace(trial, state=TrialState.STOPPED, reason="its job was deleted", ended=now)
    state = STATES.get(job.state, TrialState.RUNNING)
    seen = replace(trial, state=state, started=job.started, ended=job.ended)
    if state is TrialState.SUCCEEDED:
        outcome = facts.outcome or TrialOutcome(reason="nothing is known of its metric")
        kept = TrialState.SUCCEEDED if outcome.metric is not None else TrialState.FAILED
        return replace(seen, state=kept, metric=outcome.metric, reason=outcome.reason)
    if state is TrialState.STOPPED and closing is not None:  # not its owner, as the job says
        return replace(seen, reason=closing)
    return replace(seen, reason=job.failure or job.reason) if seen.has_ended else seen


def _close(
    now: float,
    search: ExperimentRecord,
    reason: str,
    trials: Sequence[RunRecord],
    jobs: Mapping[int | None, JobRecord | None],
) -> Iterator[Action]:
    """Stop what runs; when nothing does, end. Who forces it does not wait for that."""
    is_forced = search.wanted is SearchWanted.FORCE
    live = [trial for trial in trials if not trial.has_ended]
    for trial in live:
        job = jobs[trial.place]
        if job is not None and job.wanted is not Wanted.STOP:
            yield StopTrial(trial)
        if is_forced or job is None:
            yield UpdateTrial(replace(trial, state=TrialState.STOPPED, reason=reason, ended=now))
    if is_forced or all(jobs[trial.place] is None for trial in live):
        yield (
            _result(trials, reason)
            if search.wanted is SearchWanted.RUN
            else EndSearch(SearchState.STOPPED, reason)
        )


def _is_hopeless(spec: SearchSpec, trials: Sequence[RunRecord]) -> bool:
    """Whether a search has only failed that has no end of its own, or whose trials fail without running."""
    ended = [trial for trial in trials if trial.has_ended]
    has_only_failed = len(ended) >= HOPELESS and all(trial.state is TrialState.FAILED for trial in ended)
    return has_only_failed and (spec.max_trials is None or all(trial.job is None for trial in ended))


def _result(trials: Sequence[RunRecord], reason: str = "") -> EndSearch:
    finished = sum(trial.state is TrialState.SUCCEEDED for trial in trials)
    because = f"; {reason}" if reason else ""
    if finished:
        return EndSearch(SearchState.SUCCEEDED, f"{finished} of {len(trials)} trials have finished{because}")
    last = next((f": {trial.reason}" for trial in reversed(trials) if trial.reason not in ("", reason)), "")
    return EndSearch(SearchState.FAILED, f"none of {len(trials)} trials has finished{because}{last}")
