"""From fair sizes to sizes that are worth their changes.

At once: what is below its minimum, above a limit or on hosts that are gone; what an owner reclaims of its
guarantee, and a higher tier of lower ones; an owner's number that has been off for a while. Otherwise a job
grows only where that brings what a resize costs, if the new size lasts as long as the present one has
lasted: a job that has just been resized is likely to be resized again soon. At the cost of others it grows
only by enough, too, and not too soon after its last resize. Others shrink only to serve such growth, as few
of them as may be, and free GPUs go to as few jobs as may be.

An owner's number is put right to the GPU. Among the jobs of one owner that would cost a resize of almost all
of them whenever one starts or ends, for a GPU each. So few others serve a job instead, as long as everybody
stays within a factor of its share; whoever is behind by as much as makes a resize worth it is put right when
that has lasted for many times what a resize costs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import ceil, floor

from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Job, Options
from edt_launch.allocator.speedup import gain
from edt_launch.allocator.useful import gain_by_shrinking
from edt_launch.allocator.work import Work, bounds, usable


@dataclass(slots=True, eq=False)
class Settled:
    """Sizes, and what is to be remembered.

    Attributes:
        sizes: workers of each job once all hand-overs are done.
        imbalanced_since: since when owners have had another number than their due, by their names.
        behind_since: since when jobs have been behind their shares, by their ids.
        again_at: times at which something postponed becomes due.
    """

    sizes: list[int]
    imbalanced_since: dict[str, float] = field(default_factory=dict)
    behind_since: dict[str, float] = field(default_factory=dict)
    again_at: list[float] = field(default_factory=list)


def settle(work: Work) -> Settled:
    """Sizes that the jobs are to have now."""
    if work.soon == work.target:
        return Settled(list(work.target))
    options, now = work.cluster.options, work.now
    before = [size if is_in else 0 for size, is_in in zip(work.soon, work.is_admitted, strict=True)]
    due, have = _totals(work, work.target), _totals(work, before)
    known = work.cluster.memory.imbalanced_since
    since = {name: known.get(name, now) for name in _imbalanced(work, have, due)}
    ripe = {name for name, start in since.items() if now - start >= options.imbalance_time}
    resizes = _Resizes(work, before, have, due, ripe)
    resizes.decide()
    settled = Settled(resizes.sizes)
    settled.imbalanced_since = {name: since.get(name, now) for name in _imbalanced(work, resizes.have, due)}
    settled.behind_since = _behind(work, settled.sizes, resizes.below)
    behind = settled.behind_since
    settled.again_at = [
        *resizes.again_at,
        *(start + options.imbalance_time for start in settled.imbalanced_since.values()),
        *(
            behind[job.id] + patience(options, job.resize_cost)
            for job in map(work.jobs.__getitem__, resizes.below)
            if job.id in behind
        ),
    ]
    return settled


def band(work: Work, index: int) -> tuple[int, int]:
    """Fewest and most workers that a job may be put to, or left with; its whole number is among them."""
    due, share, tolerance = work.target[index], work.share[index], work.cluster.options.tolerance
    if work.jobs[index].allowed is not None:
        return due, due
    middle = share if abs(share - due) < 1 - SLACK else due  # by speed-up it may be due more than its share
    low, high = ceil(middle / tolerance - SLACK), floor(middle * tolerance + SLACK)
    return max(work.low[index], min(due, low)), min(work.high[index], max(due, high))


def is_behind(work: Work, index: int, size: int) -> bool:
    """Whether a size is worth putting right once it has lasted."""
    least = work.share[index] * (1 - work.cluster.options.least_change)
    return size < work.target[index] and size < least - SLACK


def is_beyond_use(work: Work, index: int, size: int) -> bool:
    """Whether a job has a number of workers that it is not offered, as fewer are as fast."""
    return size > work.high[index] or work.offered(index, size) != usable(work.jobs[index], size)


def patience(options: Options, resize_cost: float) -> float:
    """Seconds for which a job may be behind."""
    return max(options.imbalance_time, options.patience_costs * resize_cost)


def _totals(work: Work, sizes: Sequence[int]) -> dict[str, int]:
    """What the jobs below each node have together, withheld GPUs included, by its name."""
    own = work.sums(sizes)
    sums = {node.name: node.withheld + own[node.position] for node in work.nodes}
    for node in reversed(work.nodes):
        if node.parent is not None:
            sums[node.parent.name] += sums[node.name]
    return sums


def _imbalanced(work: Work, have: Mapping[str, int], due: Mapping[str, int]) -> list[str]:
    most = work.cluster.options.imbalance
    return [node.name for node in work.nodes if abs(have[node.name] - due[node.name]) >= most]


def _behind(work: Work, sizes: Sequence[int], below: Iterable[int]) -> dict[str, float]:
    known = work.cluster.memory.behind_since
    return {
        job.id: known.get(job.id, work.now)
        for index in below
        for job in [work.jobs[index]]
        if is_behind(work, index, sizes[index])
    }


class _Resizes:
    """One search for sizes between those that jobs have, or are about to, and those due.

    Attributes:
        sizes: of all jobs.
        have: their sums by owners' names.
        above, below: jobs whose sizes are above and below their due.
        again_at: times at which something postponed becomes due.
        is_left: whether GPUs are left to jobs that do not take them yet.
    """

    def __init__(
        self, work: Work, before: list[int], have: dict[str, int], due: dict[str, int], ripe: set[str]
    ) -> None:
        self.work = work
        self.options: Options = work.cluster.options
        self.sizes = before
        self.have, self.due, self.ripe = have, due, ripe
        self.again_at: list[float] = []
        self.lowest: int | None = None
        self._bands: dict[int, tuple[int, int]] = {}
        self.is_left = False
        differing = [
            index for index, (size, due) in enumerate(zip(before, work.target, strict=True)) if size != due
        ]
        self.above = {index for index in differing if before[index] > work.target[index]}
        self.below = {*differing} - self.above

    def decide(self) -> None:
        work = self.work
        self._shrink_what_must()
        self.lowest = min([work.jobs[index].tier for index in self.above], default=None)
        wanting = [index for index in self.below if self._is_wanting(index) and self._is_due(index)]
        served: set[int] = set()
        while forced := [index for index in self.below if index not in served and self._must_grow(index)]:
            self._serve(forced, self.above, is_forced=True)  # may leave others that have to grow then
            served.update(forced)
        if wanting := [index for index in wanting if index in self.below]:
            self._serve(wanting, [index for index in self.above if self._is_due(index)], is_forced=False)
        if self._free() < 0:
            self._cover(self.above)
        self._hand_out()
        if not self._is_sound():
            for index in [*self.above, *self.below]:
                self._set(index, work.target[index])

    def _is_wanting(self, index: int) -> bool:
        """Whether others should give to a job: its owner lacks something, or it is far or long behind."""
        work, size, job = self.work, self.sizes[index], self.work.jobs[index]
        if not self._pays(index, work.target[index]):
            return False
        is_short = any(self.have[node.name] < self.due[node.name] for node in work.homes[index].path[:-1])
        if is_short or size < self._band(index)[0]:
            return True
        since = work.cluster.memory.behind_since.get(job.id, work.now)
        return is_behind(work, index, size) and work.now - since >= patience(self.options, job.resize_cost)

    def _shrink_what_must(self) -> None:
        work = self.work
        over = {node for node in work.nodes if self.have[node.name] > node.limit and node.parent is not None}
        for index in [*self.above]:
            size = self.sizes[index]
            if (
                (is_beyond_use(work, index, size) and self._is_better_smaller(index))
                or usable(work.jobs[index], size) != size
                or (over and not over.isdisjoint(work.homes[index].path))
            ):
                self._set(index, work.target[index])

    def _is_better_smaller(self, index: int) -> bool:
        """Whether a job that has more than helps it would get faster by what a resize costs."""
        job, size = self.work.jobs[index], self.sizes[index]
        return size > bounds(job)[1] or self._is_paid(index, gain_by_shrinking(job.speedup, size))

    def _band(self, index: int) -> tuple[int, int]:
        if (known := self._bands.get(index)) is None:
            known = self._bands[index] = band(self.work, index)
        return known

    def _free(self) -> int:
        return int(self.work.nodes[0].limit) - self.have[""]

    def _set(self, index: int, size: int) -> None:
        step = size - self.sizes[index]
        for node in self.work.homes[index].path:
            self.have[node.name] += step
        self.sizes[index] = size
        for kind, is_in in (
            (self.above, size > self.work.target[index]),
            (self.below, size < self.work.target[index]),
        ):
            (kind.add if is_in else kind.discard)(index)

    def _must_grow(self, index: int) -> bool:
        work = self.work
        if self.sizes[index] < work.low[index]:
            return True
        if self.lowest is not None and self.lowest < work.jobs[index].tier:
            return True
        for node in work.homes[index].path[:-1]:
            have, due = self.have[node.name], self.due[node.name]
            if have < due and (node.name in self.ripe or have < min(node.guarantee, due)):
                return True
        return False

    def _pays(self, index: int, size: int) -> bool:
        before = self.sizes[index]
        if size <= before:
            return False
        if before == 0:
            return True
        is_enough = (size - before) / before > self.options.least_change
        return is_enough and self._brings_its_cost(index, size)

    def _brings_its_cost(self, index: int, size: int) -> bool:
        """Whether growing to a size brings what a resize costs, if it lasts as long as this one has."""
        job, before = self.work.jobs[index], self.sizes[index]
        is_resized_anyway = before != self.work.soon[index] or job.size != self.work.held[index]
        if job.started is None or is_resized_anyway:
            return True
        return self._is_paid(index, gain(job, before, size))

    def _is_paid(self, index: int, gained: float) -> bool:
        """Whether a gain brings what a resize costs, over as long as a job has had its size."""
        job = self.work.jobs[index]
        if gained <= 0:
            return False
        if job.started is None:
            return True
        pays_at = max(job.started, job.resized or job.started) + job.resize_cost / gained
        if pays_at > self.work.now:
            self.again_at.append(pays_at)
        return pays_at <= self.work.now

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

    def _serve(self, takers: Iterable[int], givers: Collection[int], *, is_forced: bool) -> None:
        """Grow jobs to their due, as far as what is free and what others have above theirs reaches."""
        target = self.work.target
        left = self._free() + sum([self.sizes[other] - target[other] for other in givers])
        for index in sorted(takers, key=self._urgency):
            size = self.sizes[index]
            reach = self.work.offered(index, min(target[index], size + max(0, left)))
            if reach > size and (is_forced or self._pays(index, reach)):
                left -= reach - size
                self._set(index, reach)
        if self._free() < 0:
            self._cover(givers, is_forced=is_forced)

    def _cover(self, givers: Iterable[int], *, is_forced: bool = False) -> None:
        """Shrink few of those above their due by as much as more has been given out than there is.

        First they give what they have beyond their band, then what they have above their due; for jobs that
        have to grow an owner takes what it has above its own due from few of them, within their bands.
        """
        givers = [*givers]
        for is_beyond in True, False:
            most = {other: self._band(other)[1] if is_beyond else self.work.target[other] for other in givers}
            order = [(self._expendable(other), other) for other in givers if self.sizes[other] > most[other]]
            heapify(order)
            while order and (missing := -self._free()) > 0:
                rank, other = heappop(order)
                if (now := self._expendable(other)) != rank:  # its owner has given, and is at its due by now
                    heappush(order, (now, other))
                    continue
                home, least = self.work.homes[other].name, most[other]
                excess = self.have[home] - self.due[home]
                if is_forced and not is_beyond and excess > 0:
                    missing, least = min(missing, excess), self._band(other)[0]
                self._set(other, self._shrunk(other, self.sizes[other], missing, least))
                if self.sizes[other] > most[other]:
                    heappush(order, (self._expendable(other), other))

    def _hand_out(self) -> None:
        """Give what is free to few jobs, those furthest behind first."""
        work = self.work
        if self._free() <= 0:
            return
        behind = sorted(self.below, key=self._urgency)
        taking = [index for index in behind if self._may_take(index)]
        for index in taking:
            room = min([self.due[node.name] - self.have[node.name] for node in work.homes[index].path])
            self._take(index, min(self._band(index)[1], self.sizes[index] + max(0, room)))
        for index in taking:
            self._take(index, work.target[index])
        self.is_left = len(taking) < len(behind)

    def _may_take(self, index: int) -> bool:
        """Whether growing into what is free now is worth a resize, or a trial of a size not measured yet.

        Sizes that were measured to bring nothing are not offered (`useful`).
        """
        before = self.sizes[index]
        size = min(self.work.target[index], before + self._free())
        return gain(self.work.jobs[index], before, size) <= 0 or self._brings_its_cost(index, size)

    def _shrunk(self, index: int, size: int, count: int, least: int) -> int:
        """The size that is left when a job of a size gives `count`, but goes not below `least`."""
        return min(size, max(least, self.work.offered(index, max(least, size - count))))

    def _take(self, index: int, most: int) -> None:
        size = self.sizes[index]
        reach = self.work.offered(index, min(most, size + max(0, self._free())))
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
        """Who shrinks first: lower tiers; owners above their due; whoever has most of its share; what costs
        least; the youngest.
        """
        job, size, home = self.work.jobs[index], self.sizes[index], self.work.homes[index].name
        return (
            job.tier,
            self.have[home] <= self.due[home],
            -round(size / max(self.work.share[index], 1e-9), 6),
            job.resize_cost,
            -(job.started or 0.0),
            job.id,
        )

    def _is_sound(self) -> bool:
        """Whether no GPU idles that is not left to a job, no limit is exceeded, and every size can be run."""
        work = self.work
        return (
            (self.is_left or self.have[""] >= self.due[""])
            and all(self.have[node.name] <= node.limit for node in work.nodes)
            and all(
                usable(work.jobs[index], size) == size
                for index in self.above | self.below
                if (size := self.sizes[index])
            )
        )
