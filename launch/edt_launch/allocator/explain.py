"""The few lines that `edt why` prints about a job's size."""

from edt_launch.allocator.model import Job, Reason


def explain(job: Job, reason: Reason, name: str | None = None) -> tuple[str, ...]:
    """Why a job has the size it has: what it asks for, its share, what binds, what would change it.

    Args:
        job: what it asks for, and holds.
        reason: for its size, from the last decision.
        name: what to call it, its id by default.
    """
    shares = [(owner or "pool", share) for owner, share in reason.path] + [("this job", reason.share)]
    lines = [
        f"{name or job.id} has {_workers(job.size)} and asks for {_asked(job)}.",
        "share   " + " > ".join(f"{owner} {share:.2f}" for owner, share in shares),
        f"binds   {reason.binding.value}: {reason.text}",
    ]
    if reason.change:
        lines.append(f"change  {reason.change}")
    return tuple(lines)


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _asked(job: Job) -> str:
    if job.allowed is not None:
        numbers = ", ".join(str(number) for number in job.allowed if job.min <= number <= job.max)
        return f"one of {numbers}" if numbers else "no number that it can run with"
    return str(job.min) if job.min == job.max else f"{job.min} to {job.max}"
