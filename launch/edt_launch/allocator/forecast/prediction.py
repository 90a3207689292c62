"""When jobs that wait are going to start, by what the others say of how long they still run.

The allocator is asked again and again, as if hand-overs took no time and each job ended when it says. What
time alone decides, turns of waiting jobs for instance, is left out: a job may start earlier than that. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Job
from edt_launch.allocator.speedup import gain

MAX_ENDS = 12
"""Ends of jobs that are looked ahead."""

MAX_CHOICES = 4
"""Jobs of which it is tried whether the end of each would do."""

MAX_PASSES = 3
"""Decisions until everything has been handed over."""


@dataclass(frozen=True)
class Start:
    """A job is going to start.

    Attributes:
        job: its id.
        at: when, in the seconds of `now`.
        size: its workers then.
        after: ids of the jobs whose ends it waits for, the first one first; empty if it starts at once.
        is_any: whether the end of one of them will do; otherwise all have to end.
    """

    job: str
    at: float
    size: int
    after: tuple[str, ...]
    is_any: bool


@dataclass(frozen=True)
class _Pool:
    """The pool at a time; `rests` are the seconds for which jobs still run, of those that say so."""

    now: float
    cluster: Cluster
    jobs: Mapping[str, Job]
    rests: Mapping[str, float]

    def settled(self) -> "_Pool":
        """The same when everything that the allocator wants has been handed over."""
        pool = self
        for _ in range(MAX_PASSES):
            after = pool._decided()
            if {id_: job.size for id_, job in after.jobs.items()} == {
                id_: job.size for id_, job in pool.jobs.items()
            }:
                return after
            pool = after
        return pool

    def _decided(self) -> "_Pool":
        plan, _ = decide(self.now, self.cluster, list(self.jobs.values()))
        jobs, rests = {}, dict(self.rests)
        for id_, job in self.jobs.items():
            held = plan.assignments[id_]
            after = sum(len(part.devices) for part in held)
            if id_ in rests and job.size and after:
                rests[id_] /= 1 + gain(job, job.size, after)
            jobs[id_] = replace(
                job,
                held=held,
                leaving=(),
                started=(job.started if job.size else self.now) if after else None,
                waiting_since=None if after else job.waiting_since or self.now,
            )
        return _Pool(self.now, replace(self.cluster, memory=plan.memory), jobs, rests)

    def ending(self) -> list[str]:
        """Ids of the running jobs that say when they end, the first one first."""
        return sorted(
            (id_ for id_ in self.rests if self.jobs[id_].size), key=lambda id_: (self.rests[id_], id_)
        )

    def without(self, ended: str) -> "_Pool":
        """The pool when a job has ended, settled."""
        lasted = self.rests[ended]
        rests = {
            id_: max(0.0, rest - lasted) if self.jobs[id_].size else rest
            for id_, rest in self.rests.items()
            if id_ != ended
        }
        jobs = {id_: job for id_, job in self.jobs.items() if id_ != ended}
        return _Pool(self.now + lasted, self.cluster, jobs, rests).settled()


def starts(
    now: float,
    cluster: Cluster,
    jobs: Sequence[Job],
    rests: Mapping[str, float],
    most_ends: int = MAX_ENDS,
) -> list[Start]:
    """The starts of jobs that wait, in their order, as far as they can be foreseen.

    Args:
        now: the time, of the same clock as those of the jobs.
        cluster, jobs: as the allocator decides from.
        rests: seconds for which running jobs go on at their present sizes, by their ids. The others, and
            those that start meanwhile, are taken not to end.
        most_ends: ends of jobs that are looked ahead.
    """
    waiting = [job.id for job in jobs if not job.size]
    first = pool = _Pool(now, cluster, {job.id: job for job in jobs}, rests).settled()
    found: list[Start] = []
    ended: tuple[str, ...] = ()
    while waiting:
        new = [id_ for id_ in waiting if pool.jobs[id_].size]
        for id_ in new:
            choices = _choices(first, id_) if ended and not any(one.after for one in found) else ()
            found.append(Start(id_, pool.now, pool.jobs[id_].size, choices or ended, bool(choices)))
        waiting = [id_ for id_ in waiting if id_ not in new]
        following = pool.ending()
        if not following or len(ended) == most_ends:
            break
        pool, ended = pool.without(following[0]), (*ended, following[0])
    return found


def _choices(pool: _Pool, job: str) -> tuple[str, ...]:
    """Jobs the end of each of which alone would let a job start, the first one first."""
    return tuple(ended for ended in pool.ending()[:MAX_CHOICES] if pool.without(ended).jobs[job].size)
