"""Which jobs run, when not all of their minimums fit.

Of one tier first those that an owner's guarantee has room for; then running jobs within their protected time;
then everybody by virtual time, with a turn's advantage for those that run or never have; last those that were
suspended a short time ago: else they would come back at once in place of the next one, and that one likewise.
What does not fit is skipped, until the first that waits has done so for too long: then it goes before all
that are not protected, and nothing new starts where it lacks devices until it runs (a reservation, as in EASY
backfilling; Lifka, 1995). With a time quantum that nobody loses, and an order in which whoever runs falls
back, every job gets its turn.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf
from operator import add

from edt_launch.allocator.model import Job, Policy, Preemption
from edt_launch.allocator.shares import hold_back
from edt_launch.allocator.usage import virtual_times
from edt_launch.allocator.work import Room, Work, usable

Rank = tuple[object, ...]


def set_aside(work: Work) -> None:
    """Fill in what is not lent, and what higher tiers must leave to jobs of lower ones."""
    count = len(work.jobs)
    work.kept, work.is_pinned, work.pinned, work.claims = [0] * count, [False] * count, [], {}
    _keep_unlent(work)
    if any(node.guarantee for node in work.nodes) and (len(work.tiers) > 1 or not _fit(work)):
        _pin(work)
    preemption = work.cluster.options.preemption
    if len(work.tiers) == 1:
        return
    room = Room(work, _pinned(work), work.claims)
    for _, members in work.tiers:
        for index in sorted(members, key=_seniority(work)):
            if preemption is Preemption.TO_ZERO or not work.runs[index] or not work.low[index]:
                continue
            kept, need = work.kept[index], work.low[index]
            if preemption is Preemption.NONE:
                need = max(need, usable(work.jobs[index], work.soon[index]))
            while need > work.low[index] and room.lacking(index, need - kept):
                need = usable(work.jobs[index], need - 1)
            if need > kept and not room.lacking(index, need - kept):
                room.take(index, need - kept)
                work.kept[index] = need


def release_unused(work: Work) -> bool:
    """Let higher tiers have what was kept for jobs that do not get it; whether there was anything."""
    if len(work.tiers) <= 1:
        return False
    figures = zip(work.kept, work.target, work.is_pinned, strict=True)
    kept = [before if is_pinned else min(before, target) for before, target, is_pinned in figures]
    if kept == work.kept:
        return False
    work.kept = kept
    return True


def admit(work: Work, tier: int, members: Sequence[int], entered: Mapping[str, float]) -> list[int]:
    """Those jobs of one tier that run, given what higher tiers have."""
    hold_back(work, tier)
    candidates = [index for index in members if work.high[index]]
    chosen = candidates
    if work.reserved is not None or _is_short(work, candidates):
        work.crowding = work.crowding or _crowding(work)
        chosen = _take_turns(work, candidates, entered)
    for index in chosen:
        work.is_admitted[index] = True
    return chosen


def _take_turns(work: Work, candidates: Sequence[int], entered: Mapping[str, float]) -> list[int]:
    """Admit in order; as long as somebody has waited for too long, put it first and try again."""
    fixed = [node.fixed for node in work.nodes]
    inherited, last = work.reserved, work.last_reserved
    first = [index for index in candidates if work.jobs[index].id == last and not work.runs[index]]
    while True:
        work.reserved = inherited
        rank = _rank(work, candidates, entered, first)
        room = Room(work, fixed, work.claims)
        chosen = _choose(work, sorted(candidates, key=rank), room)
        if work.reserved is inherited or work.reserved is None or work.reserved[0] in first:
            return chosen
        first.append(work.reserved[0])


def _choose(work: Work, order: Sequence[int], room: Room) -> list[int]:
    chosen = []
    for index in order:
        need, runs = work.low[index], work.runs[index]
        is_new = not runs and not work.is_pinned[index]
        if is_new and work.reserved is not None and work.reserved[1] in work.homes[index].path:
            continue
        lacking = None if work.is_pinned[index] else room.lacking(index, need)  # pinned: kept by all tiers
        if lacking is None:
            room.take(index, need)
            chosen.append(index)
        elif work.reserved is None and not runs and _has_waited(work, index):
            work.reserved = index, lacking
    return chosen


def _has_waited(work: Work, index: int) -> bool:
    """Whether a job has waited for too long, and could ever run."""
    since, need = work.jobs[index].waiting_since, work.low[index]
    is_long = since is not None and work.now - since >= longest_wait(work, index)
    return is_long and all(need <= node.limit - node.unlent for node in work.homes[index].path)


def longest_wait(work: Work, index: int) -> float:
    """Seconds after which a waiting job gets a reservation."""
    crowding = max([work.crowding.get(node.name, 1) for node in work.homes[index].path])
    return crowding * work.cluster.options.longest_wait


def _crowding(work: Work) -> dict[str, int]:
    """How many times the minimums below each owner fill what it may have, rounded up, by its name."""
    needed: list[float] = [*work.sums(work.low)]
    crowding = {}
    for node in reversed(work.nodes):
        need = needed[node.position]
        crowding[node.name] = max(1, ceil(need / max(1.0, node.limit)))
        if node.parent is not None:
            needed[node.parent.position] += min(need, node.limit)
    return crowding


def _rank(
    work: Work, candidates: Sequence[int], entered: Mapping[str, float], first: Sequence[int]
) -> Callable[[int], Rank]:
    """Sort key of admission: a class, and the order in it; `first` have waited for too long."""
    places = _places(work, candidates, entered)

    def rank(index: int) -> Rank:
        job = work.jobs[index]
        if work.is_pinned[index]:
            return 0, job.submitted, job.id
        if is_protected(work, index):
            return 1, -inf if job.started is None else job.started, job.submitted, job.id
        if index in first:
            return 2, first.index(index)
        return 4 if is_resting(work, job) else 3, *places[index]

    return rank


def _places(work: Work, candidates: Sequence[int], entered: Mapping[str, float]) -> dict[int, Rank]:
    """Places in the order of virtual time.

    The jobs of an owner that serves them in an order of its own have the places of them all in that order,
    whatever their class: whoever is admitted for another reason leaves its place to nobody.
    """
    times, turn = virtual_times(work, entered), work.cluster.options.turn
    places: dict[int, Rank] = {}
    ordered: dict[str, list[int]] = {}
    for index in candidates:
        job, home = work.jobs[index], work.homes[index]
        is_preferred = (work.runs[index] or not job.usage.service) and home.policy is Policy.FAIR
        ahead = times[index] - (turn if is_preferred else 0.0)
        places[index] = round(ahead, 6), not work.runs[index], job.submitted, job.id
        if home.policy is not Policy.FAIR:
            ordered.setdefault(home.name, []).append(index)
    for members in ordered.values():
        spots = sorted(places[index] for index in members)
        members.sort(key=lambda index: _own_place(work, index))
        places.update(zip(members, spots, strict=True))
    return places


def _own_place(work: Work, index: int) -> Rank:
    """Place among the jobs of an owner that serves them by weight, or as they were submitted."""
    job = work.jobs[index]
    by_weight = work.homes[index].policy is Policy.PRIORITY
    return -job.weight if by_weight else 0.0, job.submitted, job.id


def is_protected(work: Work, index: int) -> bool:
    """Whether a job keeps its minimum because it has started a short time ago."""
    job = work.jobs[index]
    return work.runs[index] and (job.started is None or work.now - job.started < job.protected)


def is_resting(work: Work, job: Job) -> bool:
    """Whether a job was suspended so short a time ago that none is suspended for it."""
    since = work.cluster.memory.suspended.get(job.id)
    return since is not None and work.now - since < job.protected


def _pin(work: Work) -> None:
    """Admit what fits into guarantees, and let owners claim the rest of these, if there is enough."""
    room = Room(work, _pinned(work), {})
    wanted = {node.name: 0 for node in work.nodes if node.guarantee}
    for node in work.nodes:
        for above in node.path if node.unlent else ():
            if above.guarantee:
                wanted[above.name] += node.unlent
    for _, members in work.tiers:
        for index in sorted(members, key=_seniority(work)):
            need = work.low[index]
            if need and room.is_guaranteed(index, need) and room.lacking(index, need) is None:
                room.take(index, need)
                work.is_pinned[index] = True
                work.pinned.append(index)
                work.kept[index] = need
                for node in work.homes[index].path:
                    if node.guarantee:
                        wanted[node.name] += work.high[index]
    owners = [node for node in work.nodes if node.guarantee]
    claims = {node.name: int(min(node.guarantee, node.limit, wanted[node.name])) for node in owners}
    if Room(work, _pinned(work), claims).fits(work.nodes):
        work.claims = claims


def _seniority(work: Work) -> Callable[[int], Rank]:
    def rank(index: int) -> Rank:
        job = work.jobs[index]
        started = inf if job.started is None else job.started
        return work.last_pinned.get(job.id, inf), not work.runs[index], started, job.submitted, job.id

    return rank


def _keep_unlent(work: Work) -> None:
    if all(node.lends for node in work.nodes):
        return
    wanted = work.sums(work.high)
    free = work.nodes[0].limit
    for node in reversed(work.nodes):
        if not node.lends:
            node.unlent = int(max(0, min(node.guarantee - wanted[node.position], free)))
            free -= node.unlent
        if node.parent is not None:
            wanted[node.parent.position] += wanted[node.position] + node.unlent


def _fit(work: Work) -> bool:
    """Whether the minimums of all jobs of all tiers fit, beside what is guaranteed."""
    fixed = _beside(_unlent(work), work.sums(work.low))
    claims = {node.name: node.guarantee for node in work.nodes if node.guarantee}
    return Room(work, fixed, claims).fits(work.nodes)


def _is_short(work: Work, candidates: Sequence[int]) -> bool:
    fixed = [node.fixed for node in work.nodes]
    return not Room(work, _beside(fixed, work.sums(work.low, candidates)), work.claims).fits(work.nodes)


def _pinned(work: Work) -> list[int]:
    """The minimums of pinned jobs right below each node, beside its unlent GPUs."""
    members = [index for index, is_pinned in enumerate(work.is_pinned) if is_pinned]
    return _beside(_unlent(work), work.sums(work.low, members))


def _unlent(work: Work) -> list[int]:
    return [node.unlent for node in work.nodes]


def _beside(fixed: Sequence[int], needed: Sequence[int]) -> list[int]:
    return list(map(add, fixed, needed))
