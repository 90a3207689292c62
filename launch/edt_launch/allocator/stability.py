"""From fair sizes to sizes that are worth their changes.

A job moves from what it holds towards its fair size, never past it. At once: what is below its minimum, above
a limit or on hosts that are gone; what an owner reclaims of its guarantee, and a higher tier of lower ones;
an owner's number that has been off for a while. Otherwise a job grows only if that pays within the horizon,
by enough, and not too soon after its last resize. Others shrink only to serve such growth. Free GPUs go to
whoever is short in any case, so that none idles.
"""

from dataclasses import dataclass

from edt_launch.allocator.model import Job, Options
from edt_launch.allocator.rounding import totals
from edt_launch.allocator.speedup import gain
from edt_launch.allocator.tree import Node
from edt_launch.allocator.work import Work, usable


@dataclass(slots=True, eq=False)
class Settled:
    """Sizes, and what is to be remembered.

    Attributes:
        sizes: workers of each job once all hand-overs are done.
        imbalanced_since: since when owners have held another number than their due, by their names.
        again_at: times at which something postponed becomes due.
    """

    sizes: list[int]
    imbalanced_since: dict[str, float]
    again_at: list[float]


def settle(work: Work) -> Settled:
    """Sizes that the jobs are to have now."""
    if work.held == work.target:
        return Settled(list(work.target), {}, [])
    options, now = work.cluster.options, work.now
    before = [held if is_in else 0 for held, is_in in zip(work.held, work.is_admitted, strict=True)]
    have, due = totals(work, before), totals(work, work.target)
    known = work.cluster.memory.imbalanced_since
    since = {
        node.name: known.get(node.name, now)
        for node in work.nodes
        if abs(have[node.name] - due[node.name]) >= options.imbalance
    }
    ripe = {name for name, start in since.items() if now - start >= options.imbalance_time}
    again = [start + options.imbalance_time for name, start in since.items() if name not in ripe]
    moves = _Moves(work, before, have, due, ripe)
    sizes = moves.decided()
    return Settled(sizes, since, [*again, *moves.again_at])


class _Moves:
    """One search for sizes between those held and those due."""

    def __init__(
        self, work: Work, before: list[int], have: dict[str, int], due: dict[str, int], ripe: set[str]
    ) -> None:
        self.work = work
        self.options: Options = work.cluster.options
        self.sizes = before
        self.have, self.due, self.ripe = have, due, ripe
        self.again_at: list[float] = []
        self.givers: list[int] = []
        self.lowest = 0

    def decided(self) -> list[int]:
        work, target = self.work, self.work.target
        self._shrink_what_must()
        self.givers = [index for index, size in enumerate(self.sizes) if size > target[index]]
        self.lowest = min((work.jobs[index].tier for index in self.givers), default=0)
        growing = [index for index, size in enumerate(self.sizes) if size < target[index]]
        forced = [index for index in growing if self._must_grow(index)]
        paying = [index for index in growing if self._pays(index, target[index])]
        due = [index for index in paying if self._is_due(index)]
        if forced or due or self._free():
            self.givers.sort(key=self._expendable)
            for index in sorted(forced, key=self._urgency):
                self._serve(index, is_forced=True)
            for index in sorted(due, key=self._urgency):
                if self.sizes[index] < target[index]:
                    self._serve(index, is_forced=False)
            self._cover()
            first = set(paying)
            growing.sort(key=lambda index: (-work.jobs[index].tier, index not in first, self._urgency(index)))
            for index in growing if self._free() > 0 else ():
                self._take(index)
        return self.sizes if self._is_sound() else list(target)

    def _shrink_what_must(self) -> None:
        """Jobs above their own maximum, and below owners above their limit."""
        work = self.work
        over = {node for node in work.nodes if self.have[node.name] > node.limit and node.parent is not None}
        for index, size in enumerate(self.sizes):
            if size > work.target[index] and (
                size > work.high[index]
                or usable(work.jobs[index], size) != size
                or (over and not over.isdisjoint(work.homes[index].path))
            ):
                self._set(index, work.target[index])

    def _free(self) -> int:
        return self.due[""] - self.have[""]

    def _set(self, index: int, size: int) -> None:
        step = size - self.sizes[index]
        for node in self.work.homes[index].path:
            self.have[node.name] += step
        self.sizes[index] = size

    def _must_grow(self, index: int) -> bool:
        work = self.work
        if self.sizes[index] < work.low[index]:
            return True
        if self.givers and self.lowest < work.jobs[index].tier:
            return True
        for node in work.homes[index].path:
            have, due = self.have[node.name], self.due[node.name]
            if have < due and (node.name in self.ripe or have < min(node.guarantee, due)):
                return True
        return False

    def _pays(self, index: int, size: int) -> bool:
        job, before = self.work.jobs[index], self.sizes[index]
        if size <= before:
            return False
        if before == 0:
            return True
        is_enough = (size - before) / before > self.options.least_change
        return is_enough and gain(job, before, size) * self.options.horizon >= job.resize_cost

    def _is_due(self, index: int) -> bool:
        """Whether a job's last resize is long enough ago for another that need not be."""
        job: Job = self.work.jobs[index]
        if job.resized is None:
            return True
        pause = max(self.options.resize_interval, self.options.resize_interval_costs * job.resize_cost)
        if job.resized + pause > self.work.now:
            self.again_at.append(job.resized + pause)
            return False
        return True

    def _serve(self, index: int, *, is_forced: bool) -> None:
        """Grow a job to its due, with what others have above theirs if need be."""
        work = self.work
        missing = work.target[index] - self.sizes[index] - self._free()
        gifts: list[tuple[int, int]] = []
        for other in self._candidates(work.homes[index]) if missing > 0 else ():
            if is_forced or self._is_due(other):
                size = self._shrunk(other, missing)
                gifts.append((other, size))
                missing -= self.sizes[other] - size
                if missing <= 0:
                    break
        reach = usable(work.jobs[index], work.target[index] - max(0, missing))
        if not is_forced and not self._pays(index, reach):
            return
        for other, size in gifts:
            self._set(other, size)
        self.givers = (
            [other for other in self.givers if self.sizes[other] > work.target[other]]
            if gifts
            else self.givers
        )
        self._take(index)

    def _candidates(self, home: Node) -> list[int]:
        """Who can give: the job's siblings, if their owner lacks nothing, then owners above their due."""
        homes = self.work.homes
        is_full = self.have[home.name] >= self.due[home.name]

        def rank(other: int) -> int:
            node = homes[other]
            if node is home:
                return 0 if is_full else 1
            return 1 if self.have[node.name] > self.due[node.name] else 2

        return sorted(self.givers, key=rank)

    def _cover(self) -> None:
        """Shrink until the sizes fit on what is there."""
        for other in self.givers:
            if self._free() >= 0:
                return
            self._set(other, self._shrunk(other, -self._free()))

    def _shrunk(self, index: int, count: int) -> int:
        due = self.work.target[index]
        return max(due, usable(self.work.jobs[index], max(due, self.sizes[index] - count)))

    def _take(self, index: int) -> None:
        job, size = self.work.jobs[index], self.sizes[index]
        reach = usable(job, min(self.work.target[index], size + max(0, self._free())))
        if reach > size:
            self._set(index, reach)

    def _urgency(self, index: int) -> tuple[object, ...]:
        """Who grows first: higher tiers, what is below its minimum, whoever is furthest behind."""
        job, size = self.work.jobs[index], self.sizes[index]
        return (
            -job.tier,
            size >= self.work.low[index],
            round(size - self.work.share[index], 6),
            job.submitted,
            job.id,
        )

    def _expendable(self, index: int) -> tuple[object, ...]:
        """Who shrinks first: lower tiers, whoever has most of its share, what costs least, the youngest."""
        work = self.work
        job, size = work.jobs[index], self.sizes[index]
        return (
            job.tier,
            -round(size / max(work.share[index], 1e-9), 6),
            job.resize_cost * size / (size - work.target[index]),
            -(job.started or 0.0),
            job.id,
        )

    def _is_sound(self) -> bool:
        """Whether nothing idles, no limit is exceeded, and every job has a number that it can run with."""
        work = self.work
        return (
            self._free() == 0
            and all(self.have[node.name] <= node.limit for node in work.nodes)
            and all(
                size in {0, due} or usable(job, size) == size
                for job, size, due in zip(work.jobs, self.sizes, work.target, strict=True)
            )
        )
