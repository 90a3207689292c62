"""Random pools: machines, owners and jobs, some with a history of earlier decisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import (
    Cluster,
    Host,
    HostDevices,
    Job,
    Options,
    Owner,
    Plan,
    Policy,
    Preemption,
    Usage,
)
from edt_launch.allocator.usage import remember

NOW = 10_000.0


@dataclass(frozen=True)
class Pool:
    """What a decision is made from."""

    cluster: Cluster
    jobs: tuple[Job, ...]
    now: float = NOW

    @property
    def plan(self) -> Plan:
        return decide(self.now, self.cluster, self.jobs)[0]

    def job(self, name: str) -> Job:
        return next(job for job in self.jobs if job.id == name)


FEATURES = (
    "allowed", "dips", "drain", "fixed order", "guarantees", "history", "limits", "small minimums", "speedup",
    "tiers", "unlent", "usage", "weights",
)  # fmt: skip


def pools(*features: str, never: Sequence[str] = (), jobs: int = 10) -> st.SearchStrategy[Pool]:
    """Pools that have some of the features, all of those named, none of those in `never`."""
    optional = [name for name in FEATURES if name not in never and name not in features]
    return st.builds(
        lambda seed, count, owners, hosts, chosen: build(seed, count, owners, hosts, {*features, *chosen}),
        st.integers(0, 2**32),
        st.integers(0, jobs),
        st.integers(0, 6),
        st.integers(1, 4),
        st.sets(st.sampled_from(optional), max_size=len(optional)) if optional else st.just(set()),
    )


def build(seed: int, count: int, owners: int, hosts: int, features: set[str]) -> Pool:
    random = Random(seed)
    machines = tuple(
        Host(f"h{host}", tuple(str(device) for device in range(random.randint(1, 6))))
        for host in range(hosts)
    )
    size = sum(len(host.devices) for host in machines)
    tree = [_root(random, features)]
    for number in range(owners):
        tree.append(_owner(random, f"o{number}", random.choice(tree).name, size, owners, features))
    jobs = tuple(
        _job(random, f"j{number:02}", random.choice(tree).name, size, features) for number in range(count)
    )
    options = Options(preemption=random.choice(list(Preemption))) if "tiers" in features else Options()
    pool = Pool(Cluster(machines, tuple(tree), options), jobs)
    if "history" in features:
        pool = _lived(random, pool)
    if "drain" in features:
        drained = tuple(replace(host, is_draining=random.random() < 0.4) for host in machines)
        pool = replace(pool, cluster=replace(pool.cluster, hosts=drained))
    return pool


def _root(random: Random, features: set[str]) -> Owner:
    return Owner("", None, policy=random.choice(list(Policy)) if "fixed order" in features else Policy.FAIR)


def _owner(random: Random, name: str, parent: str, size: int, count: int, features: set[str]) -> Owner:
    owner = Owner(name, parent)
    if "weights" in features:
        owner = replace(owner, weight=random.choice([0.5, 1, 1, 2, 3, 10]))
    if "guarantees" in features and random.random() < 0.5:
        owner = replace(owner, guarantee=round(random.uniform(0, size / count), random.choice([0, 1])))
        owner = replace(owner, lends="unlent" not in features or random.random() < 0.5)
    if "limits" in features and random.random() < 0.4:
        owner = replace(owner, limit=random.randint(0, size))
    if "fixed order" in features:
        owner = replace(owner, policy=random.choice(list(Policy)))
    if "usage" in features:
        owner = replace(owner, usage=Usage(random.uniform(0, 1e5), random.uniform(0, 1e5), NOW))
    return owner


def _job(random: Random, name: str, owner: str, size: int, features: set[str]) -> Job:
    least = 1 if "small minimums" in features else random.choice([1, 1, 1, 2, 3, random.randint(1, size)])
    job = Job(name, owner, least, random.randint(least, size + 2), NOW - random.choice([0, 1, 100, 5000]))
    job = replace(job, waiting_since=job.submitted)
    if "weights" in features:
        job = replace(job, weight=random.choice([0.5, 1, 1, 2, 3, 10]))
    if "tiers" in features:
        job = replace(job, tier=random.choice([0, 0, 1, 2]))
    if "allowed" in features and random.random() < 0.5:
        job = replace(
            job, allowed=tuple(sorted(random.sample(range(1, size + 2), random.randint(1, min(4, size)))))
        )
    if "speedup" in features and random.random() < 0.5:
        speed = random.uniform(0.3, 1)
        job = replace(job, speedup=tuple((count, count**speed) for count in (1, 2, 4)))
        if "dips" in features:
            job = replace(job, speedup=((1, 1.0), (2, 0.8), (4, 4**speed)))
    if "usage" in features:
        service = random.uniform(0, 1e4)
        job = replace(job, usage=Usage(service, random.uniform(0, 1e4), NOW, service / least))
    return replace(job, resize_cost=random.choice([1.0, 5.0, 60.0]))


def _lived(random: Random, pool: Pool) -> Pool:
    """The pool after some of its jobs have run for a while, alone, on some of its machines."""
    early = tuple(job for job in pool.jobs if random.random() < 0.7)
    hosts = tuple(replace(host, is_up=random.random() < 0.8) for host in pool.cluster.hosts)
    past = Pool(replace(pool.cluster, hosts=hosts), early, NOW - random.choice([5, 20, 100, 1000]))
    past = waited(settled(past), NOW - past.now)
    others = tuple(job for job in pool.jobs if job not in early)
    running = tuple(job for job in past.jobs if random.random() < 0.9)
    hosts = tuple(replace(host, is_up=random.random() < 0.9) for host in pool.cluster.hosts)
    return replace(
        pool,
        cluster=replace(pool.cluster, hosts=hosts, memory=past.cluster.memory),
        jobs=tuple(random.sample([*running, *others], len(running) + len(others))),
    )


def applied(pool: Pool, plan: Plan | None = None, passed: float = 0.0, *, is_released: bool = True) -> Pool:
    """The pool after a plan has been carried out; without `is_released`, nobody who was to leave has left."""
    plan = plan or pool.plan
    up = {host.name for host in pool.cluster.hosts if host.is_up}
    jobs = []
    for job in pool.jobs:
        held = plan.assignments[job.id]
        gone = tuple(without(job.held, held))
        leaving = () if is_released else tuple(_merged([*job.leaving, *gone]))
        new = replace(job, leaving=leaving, held=held)
        runs = any(part.host in up for part in job.held)
        if held and not runs:
            new = replace(new, started=pool.now, waiting_since=None)
        elif job.held and not held:
            new = replace(new, started=None, waiting_since=pool.now)
        elif size(held) != job.size:
            new = replace(new, resized=pool.now)
        jobs.append(new)
    return Pool(replace(pool.cluster, memory=plan.memory), tuple(jobs), pool.now + passed)


def settled(pool: Pool, rounds: int = 30) -> Pool:
    """The pool once all hand-overs are done."""
    for _ in range(rounds):
        after = applied(pool)
        if [job.held for job in after.jobs] == [job.held for job in pool.jobs]:
            return after
        pool = after
    raise AssertionError(f"still changing after {rounds} rounds: {pool}")


def waited(pool: Pool, seconds: float) -> Pool:
    """The pool after some time in which its jobs have run as they do now."""
    now = pool.now + seconds
    owners, jobs = remember(now, pool.cluster, pool.jobs, pool.plan)
    return Pool(replace(pool.cluster, owners=owners), jobs, now)


def size(parts: Sequence[HostDevices]) -> int:
    return sum(len(part.devices) for part in parts)


def pairs(parts: Sequence[HostDevices]) -> list[tuple[str, str]]:
    return [(part.host, device) for part in parts for device in part.devices]


def without(parts: Sequence[HostDevices], others: Sequence[HostDevices]) -> Iterator[HostDevices]:
    left = {part.host: part.devices for part in others}
    for part in parts:
        devices = tuple(device for device in part.devices if device not in left.get(part.host, ()))
        if devices:
            yield HostDevices(part.host, devices)


def _merged(parts: Sequence[HostDevices]) -> Iterator[HostDevices]:
    devices: dict[str, dict[str, None]] = {}
    for part in parts:
        devices.setdefault(part.host, {}).update(dict.fromkeys(part.devices))
    return (HostDevices(host, tuple(names)) for host, names in devices.items())


@dataclass
class Tree:
    """Sums of job figures over a pool's owners."""

    pool: Pool
    parents: dict[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        self.parents = {owner.name: owner.parent for owner in self.pool.cluster.owners}

    def path(self, owner: str) -> list[str]:
        names = [owner]
        while (parent := self.parents[names[-1]]) is not None:
            names.append(parent)
        return names

    def totals(self, figures: Mapping[str, float], *, is_limited: bool = False) -> dict[str, float]:
        """Sum over the jobs below each owner, perhaps cut at each owner's limit."""
        sums = dict.fromkeys(self.parents, 0.0)
        for job in self.pool.jobs:
            sums[job.owner] += figures[job.id]
        limits = {owner.name: owner.limit for owner in self.pool.cluster.owners}
        for name in sorted(self.parents, key=lambda name: -len(self.path(name))):
            if is_limited:
                sums[name] = min(sums[name], limits[name])
            if (parent := self.parents[name]) is not None:
                sums[parent] += sums[name]
        return sums
