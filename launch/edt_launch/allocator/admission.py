"""Which jobs run, when not all of their minimums fit.

Of one tier first those that an owner's guarantee has room for; then running jobs within their protected time;
then everybody by virtual time, running jobs somewhat preferred. What does not fit is skipped, until the first
that waits has done so for too long: then it goes before all that are not protected, and nothing new starts
where it lacks devices until it runs (a reservation, as in EASY backfilling; Lifka, 1995). With a time quantum
that nobody loses, and an order in which whoever runs falls back, every job gets its turn.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from edt_launch.allocator.model import Policy, Preemption
from edt_launch.allocator.shares import hold_back
from edt_launch.allocator.tree import Node
from edt_launch.allocator.usage import virtual_time
from edt_launch.allocator.work import Work, usable

Rank = tuple[object, ...]


class Room:
    """What is still free of the limits along the owners' tree.

    What owners are guaranteed, and can use, counts as taken by them.
    """

    def __init__(self, work: Work, fixed: Mapping[str, int], claims: Mapping[str, int]) -> None:
        """Start with what is taken right below each node, and what it may claim, both by its name."""
        self._homes = work.homes
        self._claims = claims
        self._used = {node.name: fixed.get(node.name, 0) for node in work.nodes}
        for node in reversed(work.nodes):
            if node.parent is not None:
                self._used[node.parent.name] += max(self._used[node.name], claims.get(node.name, 0))

    def lacking(self, index: int, count: int) -> Node | None:
        """The node, nearest first, that has no room for `count` more GPUs of a job."""
        for node in self._homes[index].path:
            before, after = self._step(node, count)
            if after > node.limit:
                return node
            count = after - before
        return None

    def is_guaranteed(self, index: int, count: int) -> bool:
        """Whether some node above a job has that much left of its guarantee."""
        return any(self._used[node.name] + count <= node.guarantee for node in self._homes[index].path)

    def fits(self, nodes: Sequence[Node]) -> bool:
        """Whether what is taken and claimed keeps all limits."""
        return all(max(self._step(node, 0)) <= node.limit for node in nodes)

    def take(self, index: int, count: int) -> None:
        """Count GPUs as taken by a job."""
        for node in self._homes[index].path:
            before, after = self._step(node, count)
            self._used[node.name] += count
            count = after - before

    def _step(self, node: Node, count: int) -> tuple[int, int]:
        claim, used = self._claims.get(node.name, 0), self._used[node.name]
        return max(claim, used), max(claim, used + count)


def set_aside(work: Work) -> None:
    """Fill in what is not lent, and what higher tiers must leave to jobs of lower ones."""
    _keep_unlent(work)
    if any(node.guarantee for node in work.nodes) and (len(work.tiers) > 1 or not _fit(work)):
        _pin(work)
    preemption = work.cluster.options.preemption
    if len(work.tiers) == 1:
        return
    room = Room(work, _pinned(work), work.claims)
    for _, members in work.tiers:
        for index in sorted(members, key=_seniority(work)):
            if work.is_pinned[index]:
                continue
            need = work.low[index]
            if preemption is Preemption.NONE:
                need = max(need, usable(work.jobs[index], work.soon[index]))
            if preemption is Preemption.TO_ZERO or not work.runs[index] or not need:
                continue
            while need > work.low[index] and room.lacking(index, need):
                need = usable(work.jobs[index], need - 1)
            if not room.lacking(index, need):
                room.take(index, need)
                work.kept[index] = need


def admit(work: Work, tier: int, members: Sequence[int], entered: Mapping[str, float]) -> list[int]:
    """Those jobs of one tier that run, given what higher tiers have."""
    hold_back(work, tier)
    candidates = [index for index in members if work.high[index]]
    chosen = candidates
    if work.reserved is not None or _is_short(work, candidates):
        chosen = _take_turns(work, candidates, entered)
    for index in chosen:
        work.is_admitted[index] = True
    return chosen


def _take_turns(work: Work, candidates: Sequence[int], entered: Mapping[str, float]) -> list[int]:
    """Admit in order; as long as somebody has waited for too long, put it first and try again."""
    fixed = {node.name: node.fixed for node in work.nodes}
    inherited, last = work.reserved, work.cluster.memory.reserved
    first = [index for index in candidates if work.jobs[index].id == last and not work.runs[index]]
    while True:
        work.reserved = inherited
        rank = _rank(work, entered, first)
        room = Room(work, fixed, work.claims)
        chosen = _choose(work, _by_policy(work, sorted(candidates, key=rank), rank), room)
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
        lacking = room.lacking(index, need)
        if lacking is None:
            room.take(index, need)
            chosen.append(index)
        elif work.reserved is None and not runs and _has_waited(work, index):
            work.reserved = index, lacking
    return chosen


def _has_waited(work: Work, index: int) -> bool:
    """Whether a job has waited for too long, and could ever run."""
    since, need = work.jobs[index].waiting_since, work.low[index]
    is_long = since is not None and work.now - since >= work.cluster.options.longest_wait
    return is_long and all(need <= node.limit - node.unlent for node in work.homes[index].path)


def _rank(work: Work, entered: Mapping[str, float], first: Sequence[int]) -> Callable[[int], Rank]:
    """Sort key of admission: a class, and the order in it; `first` have waited for too long."""
    times = [virtual_time(job, entered) for job in work.jobs]
    start = min(times, default=0.0)
    margin = 1 + work.cluster.options.margin

    def rank(index: int) -> Rank:
        job, runs = work.jobs[index], work.runs[index]
        ahead = times[index] - start
        last = (job.submitted, job.id)
        if work.is_pinned[index]:
            return (0, *last)
        if is_protected(work, index):
            return (1, -inf if job.started is None else job.started, *last)
        if index in first:
            return 2, first.index(index)
        return (3, round(ahead / margin if runs else ahead, 6), not runs, *last)

    return rank


def is_protected(work: Work, index: int) -> bool:
    """Whether a job keeps its minimum because it has started a short time ago."""
    job = work.jobs[index]
    return work.runs[index] and (job.started is None or work.now - job.started < job.protected)


def _by_policy(work: Work, order: list[int], rank: Callable[[int], Rank]) -> list[int]:
    """The same order, but jobs of one owner and class in the order in which it serves them, if any."""
    places: dict[tuple[str, object], list[int]] = {}
    for place, index in enumerate(order):
        if work.homes[index].policy is not Policy.FAIR:
            places.setdefault((work.homes[index].name, rank(index)[0]), []).append(place)
    for spots in places.values():
        members = [order[spot] for spot in spots]
        if work.homes[members[0]].policy is Policy.FIFO:
            members.sort(key=lambda index: (work.jobs[index].submitted, work.jobs[index].id))
        else:
            members.sort(key=lambda index: -work.jobs[index].weight)
        for spot, index in zip(spots, members, strict=True):
            order[spot] = index
    return order


def _pin(work: Work) -> None:
    """Admit what fits into guarantees, and let owners claim the rest of these, if there is enough."""
    room = Room(work, _pinned(work), {})
    wishes = {node.name: 0 for node in work.nodes if node.guarantee}
    for _, members in work.tiers:
        for index in sorted(members, key=_seniority(work)):
            need = work.low[index]
            if need and room.is_guaranteed(index, need) and room.lacking(index, need) is None:
                room.take(index, need)
                work.is_pinned[index] = True
                work.kept[index] = need
                for node in work.homes[index].path:
                    if node.guarantee:
                        wishes[node.name] += work.high[index]
    claims = {node.name: min(node.guarantee, wishes[node.name]) for node in work.nodes if node.guarantee}
    if Room(work, _pinned(work), claims).fits(work.nodes):
        work.claims = claims


def _seniority(work: Work) -> Callable[[int], Rank]:
    def rank(index: int) -> Rank:
        job = work.jobs[index]
        started = inf if job.started is None else job.started
        return not work.runs[index], started, job.submitted, job.id

    return rank


def _keep_unlent(work: Work) -> None:
    """Keep what owners who do not lend own and do not use."""
    wishes = {node.name: 0 for node in work.nodes}
    for index, node in enumerate(work.homes):
        wishes[node.name] += work.high[index]
    free = work.nodes[0].limit
    for node in reversed(work.nodes):
        if not node.lends:
            node.unlent = int(max(0, min(node.guarantee - wishes[node.name], free)))
            free -= node.unlent
        if node.parent is not None:
            wishes[node.parent.name] += wishes[node.name] + node.unlent


def _fit(work: Work) -> bool:
    """Whether the minimums of all jobs of all tiers fit, beside what is guaranteed."""
    fixed = {node.name: node.unlent for node in work.nodes}
    for index, need in enumerate(work.low):
        fixed[work.homes[index].name] += need
    claims = {node.name: node.guarantee for node in work.nodes if node.guarantee}
    return Room(work, fixed, claims).fits(work.nodes)


def _is_short(work: Work, candidates: Sequence[int]) -> bool:
    fixed = {node.name: node.fixed for node in work.nodes}
    for index in candidates:
        fixed[work.homes[index].name] += work.low[index]
    return not Room(work, fixed, work.claims).fits(work.nodes)


def _pinned(work: Work) -> dict[str, int]:
    """What is not lent, and what pinned jobs need, right below each node."""
    fixed = {node.name: node.unlent for node in work.nodes}
    for index, is_pinned in enumerate(work.is_pinned):
        if is_pinned:
            fixed[work.homes[index].name] += work.low[index]
    return fixed
