"""Which workers hang: a pure decision from what they tell once a second.

A worker's *heartbeat* says what its training thread is doing (`edt_hvd.world.stages`), for how long, and how
long each stage has taken at most so far. These rules follow from that:

- Silence. A process that is stopped, or whose interpreter is blocked, sends no heartbeats. One that sorts,
  parses or collects garbage in one long call sends none either, so the limit is generous.
- A stage that lasts. A worker hangs when it loads, computes or updates for much longer than any worker has so
  far, while another one waits for it in a collective. Where nobody waits, it is given far more time, and
  outside any step all the time it wants. One that is killed for a stage counts among those before, so its
  successor has more time. One that uses neither processor nor disk meanwhile has less time.
- Different collectives. When every member of the world has waited for all others in a small collective for
  `MISMATCH`, and not in the same one, none of these will ever end: the script is wrong, and the job ends.
- A collective that does not end. When all members of the world have been in it for long, and none has been
  lost meanwhile, the one of the highest rank hangs: the others go on after its loss.

A stage lasts from when its worker became a member of the present world, at the earliest. A worker that
waits in a collective for one that is not there yet, or at the rendezvous, never hangs by itself. When the
clock has jumped (this process or the machine was stopped) the silence before does not count, and nobody is
judged until the heartbeats that have come meanwhile are taken in. A stage's seconds leave out those in
which the worker was stopped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from edt_launch.membership.protocol import MemberPhase, Worker
from edt_messages import messages

REDUCING = "reducing"
"""The stage in which a worker waits for the others."""

OUTSIDE = "outside"
"""The stage of loops that are not ours, between two collectives of ours."""

FLOORS = {
    "forming": 60.0,
    "restoring": 1800.0,
    "starting to load": 300.0,
    "loading": 60.0,
    "computing": 30.0,
    "updating": 1800.0,
    OUTSIDE: 1800.0,
}
"""Seconds that each stage may last at least, while others wait."""

COLLECTIVE = 300.0
"""Seconds that a collective may last at least after the last member has entered it."""

MISMATCH = 5.0
"""Seconds after which workers that wait in different collectives wait for ever: a small one that has ended on
one worker ends on the others at once.
"""

SILENCE = 30.0
"""Seconds without a heartbeat that are nothing unusual: one long call may hold the interpreter's lock."""

IDLE, SETTLED_IDLE = 600.0, 120.0
"""The same for a worker that does nothing: seconds without work that a stage may last at least, before and
after it has been completed `SETTLED_STEPS` times. Longer ones are rare, but what a script does once in a
thousand steps (an evaluation, saving) works."""

SETTLED_STEPS = 100

AFTER_TRAINING = 300.0
"""Seconds without a heartbeat after training, when killing costs most and scripts do whatever they like."""

UNTRIED_LIMITS = dict.fromkeys(FLOORS, 300.0) | {"restoring": 1800.0}
"""The same until it has been completed `MIN_COMPLETIONS` times: the first steps compile, say."""

MIN_COMPLETIONS = 3
GAP_FACTOR = 5.0
STAGE_FACTOR = 10.0
ALONE_FACTOR = 20.0
ALONE_IDLE_FACTOR = 5.0

PAUSE = 2.0
"""Seconds between two ticks that mean that this process was stopped; then nobody is judged for as long."""


@dataclass(frozen=True)
class Times:
    """How often a stage has been completed, and the seconds that it has taken at most."""

    count: int = 0
    longest: float = 0.0


@dataclass(frozen=True)
class Heartbeat:
    """What a worker says of itself: what its training thread is doing, and for how long."""

    worker: int
    step: int | None
    stage: str
    seconds: float
    stages: Mapping[str, Times]
    """The times of each stage so far."""
    idle: float = 0.0
    """Seconds of the stage since it, or a process that it has started, last used a processor or a disk."""
    call: str = ""
    """The small collective in which it waits for all others."""

    @classmethod
    def of(cls, worker: int, message: messages.Heartbeat) -> "Heartbeat":
        """The heartbeat in a worker's message."""
        stages = {stage: Times(*times) for stage, times in message.stages.items()}
        return cls(worker, message.step, message.stage, message.seconds, stages, message.idle, message.call)


@dataclass(frozen=True)
class _Heard:
    """What was heard of a worker: its last heartbeat, None before the first, and when that came."""

    heartbeat: Heartbeat | None
    at: float
    longest_gap: float = 0.0
    generation: int = 0
    """Of the world that it is or was a member of."""
    member_since: float = -inf

    def seconds(self, now: float, generation: int) -> float:
        """For how long the stage of the last heartbeat has lasted in the world of that generation."""
        if self.heartbeat is None or generation != self.generation:  # it became a member after the last tick
            return 0.0
        return min(self.heartbeat.seconds, now - self.member_since)

    def idle(self, now: float, generation: int) -> float:
        """For how long of that nothing has been done."""
        return min(self.seconds(now, generation), self.heartbeat.idle if self.heartbeat is not None else 0.0)


@dataclass(frozen=True)
class Watch:
    """What is known of the workers."""

    timeout: float | None = None
    """Replaces all floors; 0 switches the detection off, None leaves them as they are."""
    heartbeats: Mapping[int, _Heard] = field(default_factory=dict)
    stages: Mapping[str, Times] = field(default_factory=dict)
    members: frozenset[int] = frozenset()
    """Those of the present world that have not left it or been lost."""
    members_since: float = -inf
    ticked_at: float | None = None
    woken_at: float = -inf
    """When this process was found to have been stopped, the last time."""


def observe(now: float, watch: Watch, heartbeat: Heartbeat) -> Watch:
    """Take in a heartbeat."""
    last = watch.heartbeats.get(heartbeat.worker, _Heard(None, now))
    gap = now - last.at if last.heartbeat is not None else 0.0
    heard = replace(last, heartbeat=heartbeat, at=now, longest_gap=max(gap, last.longest_gap))
    stages = dict(watch.stages)
    for name, times in heartbeat.stages.items():
        known = stages.get(name, Times())
        stages[name] = Times(max(known.count, times.count), max(known.longest, times.longest))
    return replace(watch, heartbeats={**watch.heartbeats, heartbeat.worker: heard}, stages=stages)


def tick(now: float, watch: Watch, workers: Mapping[int, Worker]) -> Watch:
    """Time has passed; `workers` are those there are.

    Must be called several times within `PAUSE`, before the heartbeats that have come are taken in.
    """
    has_slept = watch.ticked_at is not None and now - watch.ticked_at > PAUSE
    heartbeats = {}
    for key, worker in workers.items():
        if worker.phase is not MemberPhase.STARTING:
            known = watch.heartbeats.get(key, _Heard(None, now))
            if worker.generation != known.generation:
                known = replace(known, generation=worker.generation, member_since=now)
            heartbeats[key] = replace(known, at=now) if has_slept else known
    woken_at = now if has_slept else watch.woken_at
    stages = _learned(now, watch, workers.values())
    watch = replace(watch, heartbeats=heartbeats, stages=stages, ticked_at=now, woken_at=woken_at)
    members = frozenset(key for key, worker in workers.items() if worker.phase is MemberPhase.ACTIVE)
    return watch if members == watch.members else replace(watch, members=members, members_since=now)


def _learned(now: float, watch: Watch, workers: Iterable[Worker]) -> Mapping[str, Times]:
    """The times of all stages, with those of workers that are ended because they hang.

    They may have been slow only, and who takes their place would do the same. Whoever has set a timeout has
    decided that.
    """
    stages = dict(watch.stages)
    for worker in workers if watch.timeout is None else ():
        heard = watch.heartbeats.get(worker.id)
        if worker.phase is not MemberPhase.ENDING or heard is None or heard.heartbeat is None:
            continue
        if _lasting(now, watch, worker, is_waited_for=True):
            known = stages.get(heard.heartbeat.stage, Times())
            longest = max(known.longest, heard.seconds(now, worker.generation))
            stages[heard.heartbeat.stage] = replace(known, longest=longest)
    return stages


def overdue(now: float, watch: Watch, workers: Iterable[Worker]) -> list[tuple[int, str]]:
    """The workers that hang, each with the reason."""
    if watch.timeout == 0 or now - watch.woken_at < PAUSE:
        return []
    hanging = []
    watched = [
        w
        for w in workers
        if w.phase in (MemberPhase.READY, MemberPhase.ACTIVE, MemberPhase.DONE) and w.id in watch.heartbeats
    ]
    members = [w for w in watched if w.phase is MemberPhase.ACTIVE]
    waiting = [w.id for w in members if _stage(watch, w.id) == REDUCING]
    for worker in watched:
        reason = _silence(now, watch, worker)
        if reason is None and worker in members:
            reason = _lasting(now, watch, worker, is_waited_for=any(other != worker.id for other in waiting))
        if reason is not None:
            hanging.append((worker.id, f"rank {worker.rank} on {worker.slot.host} {reason}"))
    if members and len(waiting) == len(members) and not hanging:
        last = max(members, key=lambda worker: worker.rank)
        if (reason := _unending(now, watch, members)) is not None:
            hanging.append((last.id, f"rank {last.rank} on {last.slot.host} {reason}"))
    return hanging


def mismatch(now: float, watch: Watch, workers: Iterable[Worker]) -> str | None:
    """Why no member of the world will ever get on, if they wait in different collectives."""
    members = sorted((w for w in workers if w.phase is MemberPhase.ACTIVE), key=lambda worker: worker.rank)
    if watch.timeout == 0 or now - watch.woken_at < PAUSE or now - watch.members_since < MISMATCH:
        return None
    calls = {}
    for worker in members:
        heard = watch.heartbeats.get(worker.id)
        if heard is None or heard.heartbeat is None or not heard.heartbeat.call:
            return None
        if now - heard.at > MISMATCH or heard.seconds(now, worker.generation) < MISMATCH:
            return None
        calls[worker.rank] = heard.heartbeat.call
    if len({*calls.values()}) < 2:
        return None
    where = ", ".join(f"{call} (rank {rank})" for rank, call in calls.items())
    return (
        f"the workers wait for one another in different collectives: {where}; have the script call the same "
        "ones on all of them, in the same order"
    )


def _unending(now: float, watch: Watch, members: Iterable[Worker]) -> str | None:
    """Why a collective that all members are in does not end any more."""
    known = watch.stages.get(REDUCING, Times())
    floor = COLLECTIVE if watch.timeout is None else max(watch.timeout, COLLECTIVE)
    limit = max(floor, STAGE_FACTOR * known.longest)
    seconds = min(watch.heartbeats[worker.id].seconds(now, worker.generation) for worker in members)
    seconds = min(seconds, now - watch.members_since)
    if seconds <= limit:
        return None
    return (
        f"has been in a collective for {seconds:.1f} s with all other members of the world "
        f"(longest so far {known.longest:.1f} s, limit {limit:.1f} s)"
    )


def _stage(watch: Watch, worker: int) -> str | None:
    heartbeat = watch.heartbeats[worker].heartbeat
    return heartbeat.stage if heartbeat is not None else None


def _silence(now: float, watch: Watch, worker: Worker) -> str | None:
    heard = watch.heartbeats[worker.id]
    usual = AFTER_TRAINING if worker.phase is MemberPhase.DONE else SILENCE
    limit = max(usual if watch.timeout is None else watch.timeout, GAP_FACTOR * heard.longest_gap)
    silent = now - heard.at
    if silent <= limit:
        return None
    doing = f"; it was {heard.heartbeat.stage} then" if heard.heartbeat is not None else ""
    return (
        f"has not been heard of for {silent:.1f} s (longest so far {heard.longest_gap:.1f} s, "
        f"limit {limit:.1f} s){doing}"
    )


def _lasting(now: float, watch: Watch, worker: Worker, is_waited_for: bool) -> str | None:
    heard = watch.heartbeats[worker.id]
    heartbeat, seconds = heard.heartbeat, heard.seconds(now, worker.generation)
    if heartbeat is None or heartbeat.stage not in FLOORS:
        return None
    known = watch.stages.get(heartbeat.stage, Times())
    idle, learned = heard.idle(now, worker.generation), STAGE_FACTOR * known.longest
    floors = _floors(watch, heartbeat.stage, known, is_waited_for)
    limit, idle_limit = (max(floor, learned) for floor in floors)
    if seconds <= limit and idle <= idle_limit:
        return None
    waits = "while others wait" if is_waited_for else "with nobody waiting"
    after = f" after step {heartbeat.step}" if heartbeat.step is not None else ""
    nothing = f", for {idle:.1f} s of it without any work," if seconds <= limit else ""
    return (
        f"has been {heartbeat.stage} for {seconds:.1f} s{nothing}{after} {waits} "
        f"(longest so far {known.longest:.1f} s, limit {idle_limit if nothing else limit:.1f} s)"
    )


def _floors(watch: Watch, stage: str, known: Times, is_waited_for: bool) -> tuple[float, float]:
    """Seconds that a stage may last, and may do nothing, at least."""
    if stage == OUTSIDE and not is_waited_for:
        return inf, inf
    untried = UNTRIED_LIMITS[stage] if known.count < MIN_COMPLETIONS else 0.0
    floor = max(FLOORS[stage] if watch.timeout is None else watch.timeout, untried)
    idle = max(min(FLOORS[stage], SETTLED_IDLE if known.count >= SETTLED_STEPS else IDLE), untried)
    if watch.timeout is not None:
        idle = inf
    if is_waited_for:
        return floor, idle
    return ALONE_FACTOR * floor, ALONE_IDLE_FACTOR * max(idle, SETTLED_IDLE)
