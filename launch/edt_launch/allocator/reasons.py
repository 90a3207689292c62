"""Why each job has the size it has, in words for people."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from edt_launch.allocator.devices.packing import GAIN
from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Binding, Job, Move, Plan, Policy, Reason
from edt_launch.allocator.stability import is_beyond_use
from edt_launch.allocator.tree import TreeNode
from edt_launch.allocator.useful import UNCERTAINTY, Point, peak
from edt_launch.allocator.work import Room, Work, bounds, next_usable

HOUR = 3600.0

SHOWN_JOBS = 3
"""Jobs that a sentence names."""


class Reasons(Mapping[str, Reason]):
    """Reasons by the jobs' ids, each made when it is asked for: there are many, and few are read."""

    def __init__(self, work: Work, plan: Plan) -> None:
        self._work = work
        self._plan = plan
        self._positions: dict[str, int] | None = None

    def __getitem__(self, job: str) -> Reason:
        if self._positions is None:
            self._positions = {job.id: index for index, job in enumerate(self._work.jobs)}
        return reason(self._work, self._plan, self._positions[job])

    def __iter__(self) -> Iterator[str]:
        return (job.id for job in self._work.jobs)

    def __len__(self) -> int:
        return len(self._work.jobs)


def reason(work: Work, plan: Plan, index: int) -> Reason:
    """Why the job at a position has its size."""
    job = work.jobs[index]
    size = plan.targets[job.id]
    binding, text, change = _binding(work, plan, index, size)
    return Reason(
        binding=binding,
        share=work.share[index] if work.is_admitted[index] else 0.0,
        target=size,
        path=tuple((node.name, node.share) for node in reversed(work.homes[index].path)),
        text=text,
        change=change,
    )


def _binding(work: Work, plan: Plan, index: int, size: int) -> tuple[Binding, str, str]:
    job = work.jobs[index]
    now = sum(len(part.devices) for part in plan.assignments[job.id])
    if job.is_fixed and size < now:
        return (
            Binding.KEPT,
            f"keeps its {now} workers, also on hosts that were taken away: it cannot save its work",
            "Those workers run until they end or their host does.",
        )
    if not work.is_admitted[index]:
        return _not_admitted(work, index)
    moves = plan.memory.moves
    if job.id in moves:
        return _moves(moves[job.id], now, size)
    if mover := next((id_ for id_, move in moves.items() if move.partner == job.id), None):
        return _exchanges(mover, moves[mover])
    if now != size:
        return _on_the_way(now, size)
    if size != work.target[index]:
        return _postponed(work, index, size)
    if job.is_fixed and size == work.held[index]:
        return (
            Binding.KEPT,
            f"keeps the {size} that it has: it cannot save its work, which would be lost",
            "It is resized once it has come to an elastic function or has written a checkpoint.",
        )
    if size == work.high[index] < bounds(job)[1]:
        return _by_speed(job, size, work.low[index], bounds(job)[1])
    if size + 1 <= work.share[index] + SLACK and (gap := _gap_above(work, index, size)):
        binding, text, change = _by_speed(job, size, work.low[index], gap[1] - 1)
        after = work.next_offered(index, size)
        return binding, text, f"It has {after} when its share reaches that. {change}" if after else change
    if size == work.high[index]:
        return Binding.MAX, f"has {size} of {size} (its maximum)", "A higher --max would let it grow."
    return _by_share(work, index, size)


def _of_higher_tiers(work: Work, index: int, node: TreeNode) -> int:
    """GPUs of jobs below a node whose tiers are above that of a job."""
    tier = work.jobs[index].tier
    figures = zip(work.target, work.jobs, work.homes, strict=True)
    return sum(size for size, other, home in figures if other.tier > tier and node in home.path)


def _not_admitted(work: Work, index: int) -> tuple[Binding, str, str]:
    for node in work.homes[index].path:
        if node.budget is not None:
            return _spent(node)
    binding, text, change = _why_not_admitted(work, index)
    root = work.nodes[0]
    keeping = [
        work.ids[other] for other, is_nonpreemptible in enumerate(work.is_nonpreemptible) if is_nonpreemptible
    ]
    is_short_without = root.limit - root.nonpreemptible < work.low[index]
    if not keeping or not is_short_without or not work.low[index]:
        return binding, text, change
    more = f" and {len(keeping) - SHOWN_JOBS} more" if len(keeping) > SHOWN_JOBS else ""
    verb = "keeps its" if len(keeping) == 1 else "keep their"
    return (
        binding,
        f"{text}; {', '.join(keeping[:SHOWN_JOBS])}{more} {verb} devices to the end",
        f"{change} A job that cannot save its work, or forbids preemption, gives no turns.",
    )


def _why_not_admitted(work: Work, index: int) -> tuple[Binding, str, str]:
    job = work.jobs[index]
    need, _ = bounds(job)
    if not need:
        return (
            Binding.MIN,
            f"cannot run: no number from {job.min} to {job.max} is one that it can run with",
            "Change its min, max or allowed numbers.",
        )
    root = work.nodes[0]
    if need > root.limit:
        return (
            Binding.ADMISSION,
            f"waits: it needs {need}, and the pool has {int(root.limit)}",
            "A lower minimum, or more devices.",
        )
    for node in work.homes[index].path[:-1]:
        if need > node.limit:
            return (
                Binding.LIMIT,
                f"waits: it needs {need}, and the limit of {node.name} is {int(node.limit)}",
                f"A lower minimum, or a higher limit for {node.name}.",
            )
    for node in work.homes[index].path:
        higher = _of_higher_tiers(work, index, node)
        if higher and node.limit - higher < need:
            return (
                Binding.TIER,
                f"waits: {higher} of {_limit_of(node)} are for jobs of a higher priority",
                "It starts when they need less, or with a higher priority.",
            )
    if work.reservation is not None and work.reservation[0] != index:
        holder = work.jobs[work.reservation[0]]
        return (
            Binding.ADMISSION,
            f"waits: devices are being kept for {holder.id}, which has waited longest",
            "It starts when enough is free beside that, or with a lower minimum.",
        )
    return _waits_its_turn(work, index, need)


def _spent(node: TreeNode) -> tuple[Binding, str, str]:
    whose = node.name or "the pool"
    return (
        Binding.LIMIT,
        f"waits: {whose} has used its budget of {(node.budget or 0.0) / HOUR:g} GPU hours",
        f"An administrator can raise it: edt shares {node.name or '-'} --budget HOURS.",
    )


def _limit_of(node: TreeNode) -> str:
    limit = int(node.limit)
    return f"{node.name}'s limit of {limit}" if node.name else f"{limit} devices"


def _waits_its_turn(work: Work, index: int, need: int) -> tuple[Binding, str, str]:
    """Of a job that does not fit beside the minimums of those that were admitted."""
    home = work.homes[index]
    admitted = [other for other, is_in in enumerate(work.is_admitted) if is_in]
    tier = work.jobs[index].tier
    figures = zip(work.jobs, work.target, work.low, work.reserved, strict=True)
    taken = [
        whole if job.tier > tier else low if job.tier == tier else kept for job, whole, low, kept in figures
    ]
    used = [own + node.withheld for own, node in zip(work.sums(taken, admitted), work.nodes, strict=True)]
    room = Room(work, used, {})
    node = room.lacking(index, need)
    if node is None and Room(work, used, work.claims).lacking(index, need) is not None:
        return (
            Binding.ADMISSION,
            f"waits: it needs {need}, and what is free is guaranteed to owners that use it",
            "It starts when these use less of what they are guaranteed, or with a lower minimum.",
        )
    node = node or work.nodes[0]
    beside = node.withheld_below
    if node.limit - beside < need:
        return (
            Binding.ADMISSION,
            f"waits: it needs {need}, and {beside} of {int(node.limit)} devices are not lent by their owners",
            "It starts when these lend what they are guaranteed, or with a lower minimum.",
        )
    left = bisect_left(range(need), 1, key=lambda count: room.lacking(index, count + 1) is not None)
    if not any(work.jobs[other].tier == tier for other in admitted):
        return (
            Binding.LIMIT if node.name else Binding.ADMISSION,
            f"waits: it needs {need} at once, and jobs of other priorities leave {left} of {_limit_of(node)}",
            "It starts when enough of these end; a lower minimum starts earlier.",
        )
    is_queued = home.policy is not Policy.FAIR and any(work.homes[other] is home for other in admitted)
    turn = f", or {'one of another owner' if is_queued else 'one'} has had its turn"
    if is_queued and node.name and node is home:
        turn = ""  # its own owner's limit: nobody else's turn makes room below that
    return (
        Binding.LIMIT if node.name else Binding.ADMISSION,
        f"waits its turn: it needs {need} at once, and the jobs before it leave {left} of {_limit_of(node)}",
        f"It starts when a job ends{turn}; a lower minimum starts earlier.",
    )


def _on_the_way(now: int, size: int) -> tuple[Binding, str, str]:
    if now == 0:
        text = f"starts with {size} as soon as devices have been handed over"
    elif now < size:
        text = f"grows from {now} to {size} as soon as devices have been handed over"
    else:
        text = f"shrinks from {now} to {size}"
    return Binding.HAND_OVER, text, "Nothing needs to be done: it takes seconds."


def _moves(move: Move, now: int, size: int) -> tuple[Binding, str, str]:
    when = "" if now == size else " as soon as devices have been handed over"
    hosts = "one host" if len(move.hosts) == 1 else "fewer hosts"
    price = "a resize costs" if move.partner is None else "two resizes of both jobs cost"
    gained = f"on {hosts} they are taken to be {100 * GAIN:.0f} % faster"
    text = f"moves its {size} workers onto {_listed(move.hosts)}{when}: {gained}, which pays what {price}"
    return Binding.HAND_OVER, f"{text}, {move.cost:.3g} s", "Nothing needs to be done: it takes seconds."


def _exchanges(mover: str, move: Move) -> tuple[Binding, str, str]:
    where = _listed(move.hosts)
    text = f"gives {mover} devices on {where}, so that this is on one host, and gets as many elsewhere"
    return Binding.HAND_OVER, text, "Nothing needs to be done: it takes seconds."


def _listed(hosts: Sequence[str]) -> str:
    *others, last = hosts
    return f"{', '.join(others)} and {last}" if others else last


def _postponed(work: Work, index: int, size: int) -> tuple[Binding, str, str]:
    due, job = work.target[index], work.jobs[index]
    most = bounds(job)[1] if size > work.high[index] else size
    if size > due and is_beyond_use(work, index, size) and (found := peak(job.speedup, most)):
        return (
            Binding.STABILITY,
            f"has {size}: {_compared(*found)}, but to shrink now would cost more than it brings",
            "It will shrink when others need the rest, or when this has lasted for long enough.",
        )
    verb = "grow" if due > size else "shrink"
    return (
        Binding.STABILITY,
        f"has {size}; its share is {due}, but to {verb} now would cost more than it brings",
        f"It will {verb} with the next larger change, or when this has lasted for long enough.",
    )


def _gap_above(work: Work, index: int, size: int) -> tuple[int, int] | None:
    """The numbers between which a job is offered none, if the one after a size is among these."""
    after = next_usable(work.jobs[index], size)
    if after is None:
        return None
    gaps = work.gaps.get(index, ())
    return next(((below, above) for below, above in gaps if below < after < above), None)


def _compared(best: Point, larger: Point) -> str:
    relation = "slower" if larger[1] < best[1] * (1 - UNCERTAINTY) else "no faster"
    return f"{larger[0]} devices are {relation} than {best[0]} for this job"


def _by_speed(job: Job, size: int, least: int, most: int) -> tuple[Binding, str, str]:
    """Of a job that has as many workers as it makes use of, up to a number."""
    found = peak(job.speedup, most)
    assert found is not None
    (best, speed), (larger, other) = found
    text = f"has {size}: {_compared(*found)}"
    if best < size == least:
        text = f"has its minimum of {size}: {_compared(*found)}"
    elif best < size:
        text = f"has {size} to find out whether that is faster than {best}, as {larger} devices were not"
    elif job.step_time is not None and other > 0:
        text += f", measured {job.step_time / other:.3g} s against {job.step_time / speed:.3g} s a step"
    return Binding.SPEED, text, f"A --min above {size} gives it more all the same."


def _by_share(work: Work, index: int, size: int) -> tuple[Binding, str, str]:
    job, path = work.jobs[index], work.homes[index].path
    following = next_usable(job, size)
    if job.allowed is not None and following is not None and following > size + 1:
        return (
            Binding.FRAGMENTS,
            f"has {size}: its share is {_shown(work.share[index])}, and it can use {following} next",
            f"It grows when its share reaches {following}, or if it could run with other numbers.",
        )
    for node in path[:-1]:
        if node.share >= node.limit - SLACK:
            if kept := node.withheld_below:
                return (
                    Binding.LIMIT,
                    f"has {size}: {kept} of {_limit_of(node)} are not lent by their owners",
                    f"A higher limit for {node.name}, or owners there that lend what they are guaranteed.",
                )
            return (
                Binding.LIMIT,
                f"has {size}: {node.name} has its limit of {int(node.limit)}",
                f"A higher limit for {node.name}, or fewer jobs there.",
            )
    if higher := _of_higher_tiers(work, index, path[-1]):
        return (
            Binding.TIER,
            f"has {size}: {higher} of {int(path[-1].limit)} devices are for jobs of a higher priority",
            "It grows when they need less, or with a higher priority.",
        )
    if size == work.low[index] and work.share[index] <= size + SLACK:
        return (
            Binding.MIN,
            f"has its minimum of {size}: its share alone would not be more",
            "A lower minimum would let it shrink further; a larger weight or fewer jobs would let it grow.",
        )
    return (
        Binding.SHARE,
        f"has {size}: {_fair_share(work, index)}",
        "It grows when other jobs end or need less, or with a larger weight.",
    )


def _fair_share(work: Work, index: int) -> str:
    """What a job's share is a part of."""
    home = work.homes[index]
    beside = sum(
        is_admitted and home in other.path
        for other, is_admitted in zip(work.homes, work.is_admitted, strict=True)
    )
    own, owner, whole = _shown(work.share[index]), home.path[0].name, _shown(home.path[0].share)
    if not owner:
        return f"its fair share of {whole} is {own}"
    if beside == 1:
        return f"the fair share of {owner} is {whole}, and this is the only job of {owner} that runs"
    return f"the fair share of {owner} is {whole}, divided among {beside} jobs"


def explain(job: Job, reason: Reason, name: str | None = None) -> tuple[str, ...]:
    """The lines of `edt why`: what a job asks for, its share, what binds, what would change it."""
    workers = "1 worker" if job.size == 1 else f"{job.size} workers"
    lines = [f"{name or job.id} has {workers} and asks for {_asked(job)}.", f"It {reason.text}."]
    if reason.path and reason.share and job.allowed is None:  # else its owner's is without what it cannot use
        (_, whole), *owners = reason.path
        parts = [(f"{owner}'s", share) for owner, share in owners] + [("this job's", reason.share)]
        shares = ", ".join(f"{whose} is {_shown(share)}" for whose, share in parts)
        lines.append(f"Fair shares of the {_shown(whole)} devices that jobs can use: {shares}.")
    return (*lines, reason.change) if reason.change else tuple(lines)


def _shown(share: float) -> str:
    return f"{share:.2f}".rstrip("0").rstrip(".")


def _asked(job: Job) -> str:
    if job.allowed is not None:
        numbers = ", ".join(str(number) for number in job.allowed if job.min <= number <= job.max)
        return f"one of {numbers}" if numbers else "no number that it can run with"
    return str(job.min) if job.min == job.max else f"{job.min} to {job.max}"
