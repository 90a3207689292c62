"""The service's own allocator as a policy of a replay: the same functions, called in the same way."""

from collections.abc import Sequence
from dataclasses import replace

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, Job, Options, Owner, Plan, Usage
from edt_launch.allocator.speedup import hull
from edt_launch.allocator.usage import remember
from edt_launch.tools.simulate.baselines import Assignments
from edt_launch.tools.simulate.replay import Live
from edt_launch.tools.simulate.runtime import speedup
from edt_launch.tools.simulate.trace import Trace, TraceJob

ROOT = ""


class FairShare:
    """The allocator, with every user of the trace as an owner below the root.

    Args:
        trace: whose jobs will come: their speed-ups are worked out once.
        hosts: the cluster.
        resize_cost: what the allocator takes a resize to cost, in seconds.
        options: its constants.
        knows_speed: whether it has learned the jobs' speed-ups (on packed hosts), or takes them to be linear.
        by_user: whether users share the cluster and jobs their user's part, or all jobs the cluster directly.
    """

    name = "EDT"

    def __init__(
        self,
        trace: Trace,
        hosts: tuple[Host, ...],
        resize_cost: float,
        options: Options | None = None,
        knows_speed: bool = True,
        by_user: bool = True,
    ) -> None:
        users = sorted({job.user for job in trace.jobs}) if by_user else []
        owners = (Owner(ROOT, None), *(Owner(user) for user in users))
        self._cluster = Cluster(hosts, owners, options or Options())
        per_host = max(len(host.devices) for host in hosts)
        gpus = sum(len(host.devices) for host in hosts)
        self._jobs = {
            job.id: Job(
                id=job.id,
                owner=job.user if by_user else ROOT,
                min=job.min,
                max=job.max,
                submitted=job.submitted,
                weight=job.weight,
                tier=job.priority,
                resize_cost=resize_cost,
                speedup=_learned(job, min(job.max, gpus), per_host) if knows_speed else (),
            )
            for job in trace.jobs
        }
        self._usage: dict[str, Usage] = {}
        self._plan: Plan | None = None

    def decide(self, now: float, live: Sequence[Live]) -> Assignments:
        """See `Policy`."""
        jobs: Sequence[Job] = [self._job(entry) for entry in live]
        if self._plan is not None:
            owners, jobs = remember(now, self._cluster, jobs, self._plan)
            self._cluster = replace(self._cluster, owners=tuple(owners))
            self._usage = {job.id: job.usage for job in jobs}
        self._plan, _ = decide(now, self._cluster, jobs)
        self._cluster = replace(self._cluster, memory=self._plan.memory)
        return dict(self._plan.assignments)

    def _job(self, entry: Live) -> Job:
        job = self._jobs[entry.job.id]
        return replace(
            job,
            held=entry.held,
            leaving=entry.leaving,
            started=entry.started,
            resized=entry.resized,
            waiting_since=entry.waiting_since,
            usage=self._usage.get(job.id, job.usage),
        )


def _learned(job: TraceJob, most: int, per_host: int) -> tuple[tuple[int, float], ...]:
    """The corners of the job's speed-up, up to `most` workers: all that the allocator takes of it."""
    corners = hull(speedup(job.run_time, most, per_host))
    return tuple((int(workers), speed) for workers, speed in corners if workers)
