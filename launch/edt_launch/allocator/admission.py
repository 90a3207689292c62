"""Which jobs run, when not all of their minimums fit.

Of one tier first those that run and may not be suspended, and those that an owner's guarantee has room
for; then running jobs within their protected time; then those that have waited for too long; then everybody
by virtual time, with a turn's advantage for those that run (see `turns`), and those that never have before
these; last those that were suspended a short time ago: else they would come back at once instead of the next
one, and that one likewise. What does not fit is
skipped. Of those that have waited for too long the first that does not fit gets a reservation, if it could
start once others give way: where it lacks devices nothing new starts until it runs (as in EASY backfilling;
Lifka, 1995). With a time quantum that nobody loses, and an order in which whoever runs falls back, every job
gets its turn.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import accumulate, takewhile
from math import inf
from operator import add
from statistics import fmean

from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Policy, Preemption
from edt_launch.allocator.shares import fix_other_tiers
from edt_launch.allocator.turns import Turns, is_protected, is_resting
from edt_launch.allocator.work import Room, Work, could_run, usable

Rank = tuple[object, ...]


def reserve(work: Work) -> None:
    """Fill in what owners withhold, and what higher tiers must leave to jobs of lower ones."""
    work.reserved = [
        low if is_nonpreemptible else 0
        for low, is_nonpreemptible in zip(work.low, work.is_nonpreemptible, strict=True)
    ]
    work.is_pinned, work.pinned, work.claims = [*work.is_nonpreemptible], [], {}
    _withhold(work)
    if any(node.guarantee for node in work.nodes) and (len(work.tiers) > 1 or not _fit(work)):
        _pin(work)
    preemption = work.cluster.options.preemption
    if len(work.tiers) == 1 or preemption is Preemption.TO_ZERO:
        return
    room = Room(work, _pinned_minimums(work), work.claims)
    order = [index for _, members in work.tiers for index in sorted(members, key=_seniority(work))]
    running = [index for index in order if work.runs[index] and work.low[index]]
    for index in running:
        _reserve(work, room, index, work.low[index])
    for index in running if preemption is Preemption.NONE else ():
        need = usable(work.jobs[index], work.soon[index])
        while need > work.reserved[index] > 0 and not _reserve(work, room, index, need):
            need = usable(work.jobs[index], need - 1)


def _reserve(work: Work, room: Room, index: int, count: int) -> bool:
    """Reserve a number of GPUs for a job, if there is room beside what others have; whether it has them."""
    more = count - work.reserved[index]
    if more > 0 and room.lacking(index, more) is None:
        room.take(index, more)
        work.reserved[index] = count
    return work.reserved[index] >= count


def admit(work: Work, tier: int, members: Sequence[int], turns: Turns) -> list[int]:
    """Those jobs of one tier that run, given what higher tiers have."""
    fix_other_tiers(work, tier)
    candidates = [index for index in members if work.high[index]]
    chosen = candidates
    if work.reservation is not None or _is_short(work, candidates):
        chosen = _take_turns(work, candidates, turns)
    for index in chosen:
        work.is_admitted[index] = True
    return chosen


def _take_turns(work: Work, candidates: Sequence[int], turns: Turns) -> list[int]:
    """Admit in order; the first that has waited for too long and does not fit gets a reservation."""
    queues = _queues(work, candidates)
    order = _order(work, candidates, turns, queues)
    waiting = _in_line(work, candidates, queues, work.runs)
    late = [index for index, others in waiting.items() if _late_at(work, turns, index, others) <= work.now]
    overdue, before = _overdue(work, candidates, late, waiting, order)
    rank = _rank(work, overdue, before, order)
    room = Room(work, [node.fixed for node in work.nodes], work.claims)
    chosen = []
    for index in sorted(candidates, key=rank):
        need, is_new = work.low[index], not work.runs[index] and not work.is_pinned[index]
        if is_new and work.reservation is not None and work.reservation[1] in work.homes[index].path:
            continue
        lacking = None if work.is_pinned[index] else room.lacking(index, need)  # pinned: kept by all tiers
        if lacking is None:
            room.take(index, need)
            chosen.append(index)
        elif work.reservation is None and index in overdue:
            work.reservation = index, lacking
    return chosen


def _queues(work: Work, candidates: Sequence[int]) -> list[list[int]]:
    """The jobs of each owner that serves them in an order of its own, in that order, if they could run."""
    queues: dict[str, list[int]] = {}
    for index in candidates:
        home = work.homes[index]
        if home.policy is not Policy.FAIR and could_run(work, index):
            queues.setdefault(home.name, []).append(index)
    return [sorted(members, key=lambda index: _own_rank(work, index)) for members in queues.values()]


def reservation_times(work: Work, members: Sequence[int], turns: Turns, runs: Sequence[bool]) -> list[float]:
    """When jobs of one tier will have waited for too long, if those that run are as given."""
    candidates = [index for index in members if work.high[index]]
    waiting = _in_line(work, candidates, _queues(work, candidates), runs)
    return [_late_at(work, turns, index, before) for index, before in waiting.items()]


def _in_line(
    work: Work, candidates: Sequence[int], queues: Sequence[Sequence[int]], runs: Sequence[bool]
) -> dict[int, Sequence[int]]:
    """Jobs that may get a reservation if they wait for too long, and those that run before each in its queue.

    Of a queue only the first job that waits may get one.
    """
    waiting: dict[int, Sequence[int]] = {index: () for index in candidates if not runs[index]}
    for queue in queues:
        running = [*takewhile(runs.__getitem__, queue)]
        for index in queue:
            waiting.pop(index, None)
        if len(running) < len(queue):
            waiting[queue[len(running)]] = running
    return waiting


def _late_at(work: Work, turns: Turns, index: int, before: Sequence[int]) -> float:
    """When a job will have waited for too long.

    It waits since the last of those before it has started: else a queue would get one place after another.
    """
    since = work.jobs[index].waiting_since
    if since is None:
        return inf
    starts = [work.jobs[other].started for other in before]
    since = max([since, *(work.now if started is None else started for started in starts)])
    return since + turns.longest_wait(index)


def _overdue(
    work: Work,
    candidates: Sequence[int],
    late: Sequence[int],
    waiting: Mapping[int, Sequence[int]],
    order: Mapping[int, Rank],
) -> tuple[set[int], set[int]]:
    """Late jobs that others make room for, and the jobs before them in their queues.

    Those before them make no room, nor do pinned jobs and other tiers. A late job that does not fit beside
    all of these could not start however long devices were kept for it.
    """
    overdue, before = set[int](), set[int]()
    if not late:
        return overdue, before
    room = Room(work, [node.fixed for node in work.nodes], work.claims)
    for index in candidates:
        if work.is_pinned[index]:
            room.take(index, work.low[index])
    for index in sorted(late, key=lambda index: _turn_of_overdue(work, index, order)):
        others = [other for other in waiting[index] if not work.is_pinned[other]]
        need = sum([work.low[other] for other in others])
        if not work.is_pinned[index] and room.lacking(index, need + work.low[index]) is None:
            room.take(index, need)
            overdue.add(index)
            before.update(others)
    return overdue, before


def _turn_of_overdue(work: Work, index: int, order: Mapping[int, Rank]) -> Rank:
    return work.ids[index] != work.last_reservation, *order[index]


def _rank(
    work: Work, overdue: Container[int], before: Container[int], order: Mapping[int, Rank]
) -> Callable[[int], Rank]:
    """Sort key of admission: a class, and the order in it.

    Those overdue have waited for too long; those `before` one of them keep their places.
    """

    def rank(index: int) -> Rank:
        job = work.jobs[index]
        if work.is_pinned[index]:
            return 0, job.submitted, job.id
        if index in before or is_protected(work, index):
            return 1, -inf if job.started is None else job.started, job.submitted, job.id
        if index in overdue:
            return 2, *_turn_of_overdue(work, index, order)
        return 4 if is_resting(work, job) else 3, *order[index]

    return rank


def _order(
    work: Work, candidates: Sequence[int], turns: Turns, queues: Sequence[Sequence[int]]
) -> dict[int, Rank]:
    """The order of virtual time, with a turn's advantage for those that run.

    Those that never have go before those that run, but not before one whose virtual time is behind the one at
    which they have entered: it is owed its turn.

    The jobs of an owner that serves them in an order of its own have their ranks in that order. A job has
    the same rank there whether or not it is admitted for another reason.
    """
    times = {index: turns.virtual_time(index) for index in candidates}
    ahead = {index: time - turns.turn(index) * work.runs[index] for index, time in times.items()}
    passed = _passed([(times[index], ahead[index]) for index in candidates if work.runs[index]])
    order: dict[int, Rank] = {}
    for index in candidates:
        job, has_run = work.jobs[index], turns.has_run(index)
        time = ahead[index] if has_run else min(times[index] - turns.turn(index), passed(times[index]))
        order[index] = round(time, 6), has_run, not work.runs[index], job.submitted, job.id
    for queue in queues:
        order.update(_in_own_order(work, queue, turns))
    return order


def _passed(running: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """Of jobs that run, by their times and ranks: the first rank of those that have come to a time."""
    latest_first = sorted(running, reverse=True)
    ranks = list(accumulate((rank for _, rank in latest_first), min))

    def first(time: float) -> float:
        count = bisect_right(latest_first, -time, key=lambda one: -one[0] - SLACK)
        return ranks[count - 1] if count else inf

    return first


def _in_own_order(work: Work, queue: Sequence[int], turns: Turns) -> dict[int, Rank]:
    """Ranks of the jobs of a queue: all at their mean time, as many as run ahead by a mean turn.

    That depends on how many run, and not on which: else it would change when one runs instead of another.
    """
    jobs, count = work.jobs, sum([work.runs[index] for index in queue])
    mean = fmean([turns.virtual_time(index) for index in queue])
    ahead = mean - fmean([turns.turn(index) for index in queue])
    ties = sorted([(jobs[index].submitted, jobs[index].id) for index in queue])
    order: dict[int, Rank] = {}
    for number, (index, tie) in enumerate(zip(queue, ties, strict=True)):
        order[index] = round(ahead if number < count else mean, 6), True, number >= count, *tie
    return order


def _own_rank(work: Work, index: int) -> Rank:
    """Rank among the jobs of an owner that serves them by weight, or as they were submitted."""
    job = work.jobs[index]
    by_weight = work.homes[index].policy is Policy.PRIORITY
    return -job.weight if by_weight else 0.0, job.submitted, job.id


def _pin(work: Work) -> None:
    """Admit what fits into guarantees, and let owners claim the rest of these, if there is enough."""
    room = Room(work, _pinned_minimums(work), {})
    wanted = {node.name: 0 for node in work.nodes if node.guarantee}
    for node in work.nodes:
        for above in node.path if node.withheld else ():
            if above.guarantee:
                wanted[above.name] += node.withheld
    for _, members in work.tiers:
        for index in sorted(members, key=_seniority(work)):
            need = work.low[index]
            if work.is_pinned[index]:
                _want(work, index, wanted)
            elif need and room.is_guaranteed(index, need) and room.lacking(index, need) is None:
                room.take(index, need)
                work.is_pinned[index] = True
                work.pinned.append(index)
                work.reserved[index] = need
                _want(work, index, wanted)
    owners = [node for node in work.nodes if node.guarantee]
    claims = {node.name: int(min(node.guarantee, node.limit, wanted[node.name])) for node in owners}
    if Room(work, _pinned_minimums(work), claims).fits(work.nodes):
        work.claims = claims


def _want(work: Work, index: int, wanted: dict[str, int]) -> None:
    """Count what a job can use among what the owners above it, by their names, want of their guarantees."""
    for node in work.homes[index].path:
        if node.guarantee:
            wanted[node.name] += work.high[index]


def _seniority(work: Work) -> Callable[[int], Rank]:
    def rank(index: int) -> Rank:
        job = work.jobs[index]
        started = inf if job.started is None else job.started
        return work.last_pinned.get(job.id, inf), not work.runs[index], started, job.submitted, job.id

    return rank


def _withhold(work: Work) -> None:
    """Fill in what is kept for owners that do not lend: what they leave of guarantees, within all limits."""
    if all(node.lends for node in work.nodes):
        return
    wanted, promised = work.sums(work.high), [0] * len(work.nodes)
    free = [node.limit for node in work.nodes]
    for home, low, is_nonpreemptible in zip(work.homes, work.low, work.is_nonpreemptible, strict=True):
        if is_nonpreemptible and all(node.lends for node in home.path):
            for node in home.path:
                free[node.position] -= low
    for node in reversed(work.nodes):
        if not node.lends:
            above = [each.position for each in node.path]
            more = max(0, int(min(node.guarantee - promised[node.position], *(free[at] for at in above))))
            for at in above:
                free[at] -= more
                promised[at] += more
            node.withheld = max(0, promised[node.position] - wanted[node.position])
        if node.parent is not None:
            wanted[node.parent.position] += wanted[node.position] + node.withheld
    for node in reversed(work.nodes):
        node.withheld_below = node.withheld + sum([child.withheld_below for child in node.children])


def _fit(work: Work) -> bool:
    """Whether the minimums of all jobs of all tiers fit, beside what is guaranteed."""
    fixed = _beside(_withheld(work), work.sums(work.low))
    claims = {node.name: node.guarantee for node in work.nodes if node.guarantee}
    return Room(work, fixed, claims).fits(work.nodes)


def _is_short(work: Work, candidates: Sequence[int]) -> bool:
    fixed = [node.fixed for node in work.nodes]
    return not Room(work, _beside(fixed, work.sums(work.low, candidates)), work.claims).fits(work.nodes)


def _pinned_minimums(work: Work) -> list[int]:
    """The minimums of pinned jobs right below each node, beside its withheld GPUs."""
    members = [index for index, is_pinned in enumerate(work.is_pinned) if is_pinned]
    return _beside(_withheld(work), work.sums(work.low, members))


def _withheld(work: Work) -> list[int]:
    return [node.withheld for node in work.nodes]


def _beside(fixed: Sequence[int], needed: Sequence[int]) -> list[int]:
    return list(map(add, fixed, needed))
