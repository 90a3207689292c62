"""The input of the allocator: its jobs, hosts, owners and options, made of rows and settings."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from edt_launch.allocator.model import Host, HostDevices, Job, Options, Owner, Policy, Preemption, Usage
from edt_launch.cluster.local import Cores, Slots
from edt_launch.service.cluster.records import HostRecord, ShareRecord
from edt_launch.service.db.types import Held
from edt_launch.service.jobs.records import JobRecord

MEMORY = "allocator"
"""Key under which `memory` keeps what the last decision has left for the next."""

HOUR = 3600.0

SHARING = (Slots.name, Cores.name)
"""Sources whose slots share the processors of one machine."""


class Constants(Protocol):
    """Settings that are the allocator's constants; `service.app.settings.Settings` has them."""

    @property
    def preemption(self) -> str: ...  # noqa: D102
    @property
    def turn(self) -> float: ...  # noqa: D102
    @property
    def longest_wait(self) -> float: ...  # noqa: D102


def options(settings: Constants) -> Options:
    """The allocator's constants."""
    return Options(
        preemption=Preemption(settings.preemption),
        turn=settings.turn,
        longest_wait=settings.longest_wait,
    )


def options_on(hosts: Iterable[HostRecord], constants: Options) -> Options:
    """The constants on these machines: without measured speeds where these depend on what else runs."""
    shares = any(host.source in SHARING for host in hosts)
    return replace(constants, by_speedup=constants.by_speedup and not shares)


def host(record: HostRecord) -> Host:
    """A machine."""
    return Host(record.name, record.devices, record.is_up, record.is_draining)


def owners(records: Iterable[ShareRecord], users: Iterable[str]) -> Iterator[Owner]:
    """The tree, with those of `users` who have no place in it below the root."""
    found = {record.name: record for record in records}
    found.setdefault("", ShareRecord("", None))
    for user in sorted(users):
        found.setdefault(user, ShareRecord(user))
    for record in found.values():
        yield Owner(
            record.name,
            record.parent,
            record.weight,
            record.guarantee,
            record.limit,
            record.lends,
            Policy(record.policy),
            record.half_life,
            Usage(record.service, record.entitlement, record.usage_at, record.used * HOUR),
            record.budget * HOUR,
        )


def usage(owner: Owner) -> dict[str, float]:
    """What is remembered of an owner's use, as columns of its row."""
    used = owner.usage
    return {
        "service": used.service,
        "entitlement": used.entitlement,
        "usage_at": used.at,
        "used": used.attained / HOUR,
    }


def job(record: JobRecord, protected: float) -> Job:
    """A job that wants to run, or runs; `protected` is for how long it keeps its minimum once started."""
    return Job(
        record.id,
        record.owner,
        record.min,
        record.max,
        record.submitted,
        weight=record.weight,
        tier=record.priority,
        allowed=record.allowed,
        resize_cost=record.resize_cost,
        start_cost=record.start_cost,
        speedup=record.speedup,
        protected=protected,
        held=held(record.held),
        leaving=held(record.leaving),
        started=record.running_since if record.size else None,
        resized=record.resized,
        waiting_since=None if record.size else record.waiting_since or record.submitted,
        usage=Usage(record.service, record.entitlement, record.usage_at, record.attained),
        preemption=preemption(record, can_save=record.can_save),
    )


def preemption(record: JobRecord, *, can_save: bool) -> Preemption:
    """What may be taken from a job while it runs: nothing if its work were lost, unless its user agrees."""
    if not (can_save or record.restartable or record.may_lose):
        return Preemption.NONE
    return Preemption.TO_ZERO if record.preemptible else Preemption.TO_MIN


def held(devices: Held) -> tuple[HostDevices, ...]:
    """What a job holds."""
    return tuple(HostDevices(name, names) for name, names in devices)
