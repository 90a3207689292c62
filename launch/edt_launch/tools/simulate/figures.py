"""What a replay is judged by.

* JCT, job completion time: seconds from submission to end. p99 is the shortest that 99 % of the jobs do not
  exceed.
* Makespan: from the start of the trace to the last end.
* Finish-time fairness rho (Mahajan et al., Themis, NSDI 2020; computed as in Qiao et al., Pollux, OSDI 2021):
  a job's JCT, divided by what it would have taken alone on its part of the cluster: the best number of packed
  GPUs up to floor(G / N) and its max, N being the mean number of jobs in the system during its life; where G
  / N is below its min, its min for that part of the time. No resize and no wait is in the divisor, so that
  short jobs have a rho above 1 however they are treated.
* Unfair: the part of jobs whose rho is above 1.05 (the tolerance of Zheng et al., Shockwave, NSDI 2023).
* Share error: of the GPU time that was due to jobs, the part that they did not have. Due at a time is the
  real share that the tree of owners gives with nothing remembered and nothing rounded: it knows nothing of
  minimums and of what runs, and is the same for every policy.
* Idle: of the GPU time that jobs could have used, the part in which GPUs stood idle. GPUs with which a job is
  no faster than with fewer are none that it could have used.
* Resizes: changes of a running job's devices; suspensions: times that it lost all of them. Per job.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil

from edt_launch.allocator.filling import fill
from edt_launch.allocator.useful import useful
from edt_launch.tools.simulate.replay import SimulatedJob, SimulatedRun
from edt_launch.tools.simulate.runtime import best, speedup
from edt_launch.tools.simulate.trace import TraceJob

TOLERANCE = 1.05
"""A finish-time fairness up to which a job is not treated unfairly."""


@dataclass(frozen=True)
class Figures:
    """See above. Times in seconds, parts from 0 to 1."""

    jobs: int
    mean_jct: float
    median_jct: float
    p99_jct: float
    makespan: float
    worst_rho: float
    mean_rho: float
    unfair: float
    share_error: float
    idle: float
    resizes_per_job: float
    suspensions_per_job: float
    decisions: int


def judge(outcome: SimulatedJob, by_user: bool = True) -> Figures:
    """The figures of a replay; see `due` for `by_user`."""
    runs = outcome.runs
    times = sorted(jct(run) for run in runs)
    fairness = rho(outcome)
    error, idle = _errors(outcome, by_user)
    return Figures(
        jobs=len(runs),
        mean_jct=sum(times) / len(times),
        median_jct=quantile(times, 0.5),
        p99_jct=quantile(times, 0.99),
        makespan=max(run.ended for run in runs),
        worst_rho=max(fairness),
        mean_rho=sum(fairness) / len(fairness),
        unfair=sum(value > TOLERANCE for value in fairness) / len(fairness),
        share_error=error,
        idle=idle,
        resizes_per_job=sum(run.resizes for run in runs) / len(runs),
        suspensions_per_job=sum(run.suspensions for run in runs) / len(runs),
        decisions=outcome.decisions,
    )


def jct(run: SimulatedRun) -> float:
    """Seconds from submission to end."""
    return run.ended - run.job.submitted


def quantile(ordered: Sequence[float], part: float) -> float:
    """The smallest of the ordered values that `part` of them do not exceed (nearest rank)."""
    return ordered[max(0, ceil(part * len(ordered) - 1e-9) - 1)]


def rho(outcome: SimulatedJob) -> list[float]:
    """Finish-time fairness of every run, in their order."""
    per_host = max(len(host.devices) for host in outcome.hosts)
    changes = sorted(
        [(run.job.submitted, 1) for run in outcome.runs] + [(run.ended, -1) for run in outcome.runs]
    )
    times = [time for time, _ in changes]
    counts = list(accumulate(change for _, change in changes))
    integral = [0.0, *accumulate(n * (b - a) for n, (a, b) in zip(counts, pairwise(times), strict=False))]

    def jobs_until(time: float) -> float:
        at = bisect_right(times, time) - 1
        return integral[at] + counts[at] * (time - times[at])

    ratios = []
    for run in outcome.runs:
        mean = (jobs_until(run.ended) - jobs_until(run.job.submitted)) / jct(run)
        part = outcome.gpus / mean
        most = max(run.job.min, int(part + 1e-9))
        alone = best(run.job.run_time, min(most, run.job.max), per_host)
        ratios.append(jct(run) / (alone * max(1.0, run.job.min / part)))
    return ratios


def contention_rho(outcome: SimulatedJob) -> list[float]:
    """Finish-time fairness with a fixed contention, as Shockwave's simulator prints it, for every run.

    JCT divided by (time alone on the GPUs requested) x max(1, jobs of the trace / GPUs).
    """
    contention = max(1.0, len(outcome.runs) / outcome.gpus)
    return [jct(run) / (run.job.run_time.seconds(run.job.requested, 1) * contention) for run in outcome.runs]


def due(gpus: int, live: Sequence[TraceJob], by_user: bool = True) -> dict[str, float]:
    """GPUs due to each live job: users have equal parts, or all jobs if not `by_user`."""
    groups: defaultdict[str, list[TraceJob]] = defaultdict(list)
    for job in live:
        groups[job.user if by_user else ""].append(job)
    users = list(groups.values())
    parts = _divide(gpus, [1.0] * len(users), [sum(job.max for job in jobs) for jobs in users])
    shares: dict[str, float] = {}
    for jobs, part in zip(users, parts, strict=True):
        of_jobs = _divide(part, [job.weight for job in jobs], [job.max for job in jobs])
        shares |= zip((job.id for job in jobs), of_jobs, strict=True)
    return shares


def _divide(total: float, weights: Sequence[float], most: Sequence[float]) -> list[float]:
    return fill(total, weights, [0.0] * len(most), most)


def _errors(outcome: SimulatedJob, by_user: bool) -> tuple[float, float]:
    changes: list[tuple[float, TraceJob, int | None]] = []
    for run in outcome.runs:
        changes.append((run.job.submitted, run.job, 0))
        changes += [(time, run.job, size) for time, size in run.sizes[:-1]]
        changes.append((run.ended, run.job, None))
    changes.sort(key=lambda change: change[0])
    live: dict[str, TraceJob] = {}
    sizes: dict[str, int] = {}
    shares: Mapping[str, float] = {}
    per_host = max(len(host.devices) for host in outcome.hosts)
    most = {run.job.id: _useful(run.job, outcome.gpus, per_host) for run in outcome.runs}
    then = total_due = missed = usable = unused = 0.0
    for time, job, size in changes:
        if time > then and live:
            shares = shares or due(outcome.gpus, [*live.values()], by_user)
            length = time - then
            total_due += length * sum(shares.values())
            missed += length * sum(max(0.0, shares[key] - sizes[key]) for key in live)
            could = min(outcome.gpus, sum(most[key] for key in live))
            usable += length * could
            unused += length * max(0, could - sum(sizes.values()))
        then = time
        if size is None or job.id not in live:
            shares = {}
        if size is None:
            del live[job.id], sizes[job.id]
        else:
            live[job.id], sizes[job.id] = job, size
    return (missed / total_due if total_due else 0.0), (unused / usable if usable else 0.0)


def _useful(job: TraceJob, gpus: int, per_host: int) -> int:
    most = min(job.max, job.run_time.largest, gpus)
    return max(job.min, useful(speedup(job.run_time, most, per_host), most))
