"""A job's events in words, for its user."""

from collections.abc import Mapping
from typing import Any


def describe(event: Mapping[str, Any]) -> str | None:
    """What to tell a user about an event; None if nothing."""
    return _of_workers(event) or _of_the_job(event) or _of_checkpoints(event)


def workers(size: int | None) -> str:
    """So many workers."""
    return "1 worker" if size == 1 else f"{size or 0} workers"


def _of_workers(event: Mapping[str, Any]) -> str | None:
    match event:
        case {"event": "failed", "rank": rank, "host": host, "exit_code": code}:
            how = f"killed by {event['signal']}" if event.get("signal") else f"exit code {code}"
            said = event.get("reason") or f"rank {rank} on {host} has failed: {how}"
            return f"{said}{_what_next(event, 'its slot')}"
        case {"event": "leaving", "rank": rank, "host": host, "reason": reason}:
            return f"rank {rank} on {host} has been told to leave: {reason}"
        case {"event": "waiting"}:
            return _describe_shortage(event)
        case {"event": "slow_start"}:
            return _describe_slow_start(event)
        case {"event": "warm_server", "host": host, "refused": str(reason)}:
            return f"workers on {host} start one by one, which takes longer: {reason}"
    return None


def _of_the_job(event: Mapping[str, Any]) -> str | None:
    match event:
        case {"event": "world", "size": int(size)} if event.get("previous_size") is None:
            return f"{workers(size)} training"
        case {"event": "resumed", "from": before, "to": after, "pause": float() | int() as pause}:
            return f"{before} -> {after} workers, training paused for {pause:.2f} s"
        case {"event": "restarting", "reason": reason, "restart": restart, "of": most}:
            when = event.get("delay")
            later = f", in {when:.0f} s or when the allocation changes" if when else ""
            anew = "" if event.get("has_checkpoint") else "; without a checkpoint, so from the beginning"
            return f"restarting the job, {restart} of {most} times{later}: {reason}{anew}"
        case {"event": "usable", "max_workers": int(most)}:
            return f"the program can use {workers(most)} at most"
        case {"event": "allocation_accepted", "generation": generation, "slots": slots, "first": False}:
            return f"allocation {generation}: {slots} {'slot' if slots == 1 else 'slots'}"
        case {"event": "allocation_rejected", "reason": reason}:
            return f"allocation not followed: {reason}"
    return None


def _of_checkpoints(event: Mapping[str, Any]) -> str | None:
    match event:
        case {"event": "restored", "step": step, "path": path}:
            return f"going on from step {step}: {path}"
        case {"event": "checkpoint_skipped", "path": path, "reason": reason}:
            return f"checkpoint {path} is skipped: {reason}"
        case {"event": "checkpoint_failed", "reason": reason}:
            return f"no checkpoint written: {reason}; training goes on"
        case {"event": "checkpointed", "step": step, "again": True}:
            return f"checkpoints are written again, the last at step {step}"
    return None


def _what_next(event: Mapping[str, Any], slot: str) -> str:
    """What becomes of a slot in which workers have failed or which they have left."""
    seconds = event.get("retry_after")
    return f"; {slot} is tried again in {seconds:.0f} s" if seconds is not None else ""


def _describe_shortage(event: Mapping[str, Any]) -> str:
    """Why training stands still, slot by slot."""
    have, need, allocated = event["have"], event["need"], event["allocated"]
    lines = [f"waiting: {have} of at least {need} workers can run; for {event['seconds']:.0f} s at most"]
    lines += [
        f"  slot {lack['slot']} of {lack['host']} {lack['reason']}{_what_next(lack, 'it')}"
        for lack in event["missing"]
    ]
    if allocated < need:
        lines.append(f"  the allocation shows {allocated} {'slot' if allocated == 1 else 'slots'}")
    return "\n".join(lines)


def _describe_slow_start(event: Mapping[str, Any]) -> str:
    """Which newcomers take long, and what becomes of them."""
    names = ", ".join(f"slot {worker['slot']} of {worker['host']}" for worker in event["workers"])
    longest, waited, limit = event["longest"], event["waited"], event["limit"]
    usual = (
        "no worker has come to the elastic function yet"
        if longest is None
        else f"others took {longest:.0f} s"
    )
    said = f"still starting after {event['seconds']:.0f} s ({usual}): {names}"
    if waited is not None and waited != limit:
        said += f"; after {waited:.0f} s the others go on without"
    if limit is None:
        return f"{said}; there is no limit to that (--ready-timeout sets one)"
    return f"{said}; after {limit:.0f} s they are ended and tried again (--ready-timeout)"
