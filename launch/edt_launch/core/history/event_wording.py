"""A job's events in words, for its user."""

import shlex

from edt_launch.core.history import events


def describe(event: events.Event) -> str | None:
    """What to tell a user about an event; None if nothing."""
    return _of_workers(event) or _of_the_job(event)


def workers(size: int | None) -> str:
    """So many workers."""
    return "1 worker" if size == 1 else f"{size or 0} workers"


def _of_workers(event: events.Event) -> str | None:
    match event:
        case events.Failed(_, host, rank=rank, reason=reason, retry_after=retry_after):
            said = reason or f"rank {rank} on {host} has failed: {event.how_it_ended}"
            return f"{said}{_retried(retry_after, 'its slot')}"
        case events.Leaving(_, host, rank=rank, reason=reason):
            return f"rank {rank} on {host} has been told to leave: {reason}"
        case events.Waiting():
            return _describe_shortage(event)
        case events.SlowStart():
            return _describe_slow_start(event)
        case events.WarmServer(host, refused=str(reason)):
            return f"workers on {host} start one by one, which takes longer: {reason}"
        case events.HostReachable(host):
            return f"{host} can be reached again"
    return None


def _of_the_job(event: events.Event) -> str | None:
    match event:
        case events.Launched(command) if command:
            return f"starting workers: {shlex.join(command)}"
        case events.World(size=size, previous_size=None):
            return f"{workers(size)} training"
        case events.Resumed(_, before, after, pause):
            return f"{before} -> {after} workers, training paused for {pause:.2f} s"
        case events.Restarting(reason, delay, restart, of):
            later = f", in {delay:.0f} s or when the allocation changes" if delay else ""
            anew = "" if event.has_checkpoint else "; without a checkpoint, so from the beginning"
            return f"restarting the job, {restart} of {of} times{later}: {reason}{anew}"
        case events.ResizeDue(size, wanted, limit):
            most = "" if limit is None else f", for {limit:.0f} s at most"
            return f"{size} -> {wanted} workers at the next checkpoint of the program{most}"
        case events.Usable(most):
            return f"the program can use {workers(most)} at most"
        case events.AllocationAccepted(generation, slots, first=False):
            return f"allocation {generation}: {_slots(slots)}"
        case events.AllocationRejected(reason):
            return f"allocation not followed: {reason}"
        case _:
            return _of_checkpoints(event)


def _of_checkpoints(event: events.Event) -> str | None:
    match event:
        case events.Restored(path, step):
            return f"going on from step {step}: {path}"
        case events.CheckpointSkipped(path, reason):
            return f"checkpoint {path} is skipped: {reason}"
        case events.CheckpointFailed(reason):
            return f"no checkpoint written: {reason}; training goes on"
        case events.Checkpointed(step, again=True):
            return f"checkpoints are written again, the last at step {step}"
    return None


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"


def _retried(retry_after: float | None, slot: str) -> str:
    return f"; {slot} is tried again in {retry_after:.0f} s" if retry_after is not None else ""


def _describe_shortage(waiting: events.Waiting) -> str:
    have, need, seconds = waiting.have, waiting.need, waiting.seconds
    lines = [f"waiting: {have} of at least {need} workers can run; for {seconds:.0f} s at most"]
    lines += [
        f"  slot {lack.slot} of {lack.host} {lack.reason}{_retried(lack.retry_after, 'it')}"
        for lack in waiting.missing
    ]
    if waiting.allocated < need:
        lines.append(f"  the allocation shows {_slots(waiting.allocated)}")
    return "\n".join(lines)


def _describe_slow_start(slow: events.SlowStart) -> str:
    names = ", ".join(f"slot {worker.slot} of {worker.host}" for worker in slow.workers)
    said = f"no worker has come to an elastic function after {slow.seconds:.0f} s: {names}"
    if slow.longest is not None:
        said = f"still starting after {slow.seconds:.0f} s (others took {slow.longest:.0f} s): {names}"
    if slow.waited is not None and slow.waited != slow.limit:
        said += f"; after {slow.waited:.0f} s the others go on without"
    if slow.limit is None:
        return f"{said}; there is no limit to that (--ready-timeout sets one)"
    return f"{said}; after {slow.limit:.0f} s they are ended and tried again (--ready-timeout)"
