"""What the service says about jobs, machines and shares, as far as it is shown; the rest is ignored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.cli.errors import NonsenseError

ENDED = frozenset({"succeeded", "failed", "stopped"})
"""The states in which nothing happens to a job any more."""


@dataclass(frozen=True)
class HostDevices:
    """Devices of one host that a job has."""

    host: str
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """A job. Fields that the asking user may not see, or that are not known yet, are None.

    Attributes:
        id, name, owner, state, reason, failure: texts.
        command: its words.
        directory: the folder inside the submitted code that it runs in.
        min, max: workers that it needs at least, and can use at most.
        allowed: the numbers of workers that it can run with, if not all of them.
        priority: its tier; weight: its share of its owner's share.
        size, target: workers that it has now, and is to have.
        share: its real share, in devices.
        submitted, started, ended: unix times.
        exit_code: how it ended.
        step, total_steps, loss, throughput: how far it is; steps, and steps a second.
        eta: seconds that it will still take.
        restarts, resizes: how often that has happened.
        hosts: what it has.
    """

    id: str
    owner: str
    state: str
    name: str = ""
    reason: str | None = None
    command: tuple[str, ...] | None = None
    directory: str | None = None
    min: int | None = None
    max: int | None = None
    allowed: tuple[int, ...] | None = None
    priority: int | None = None
    weight: float | None = None
    size: int = 0
    target: int | None = None
    share: float | None = None
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    failure: str | None = None
    step: int | None = None
    total_steps: int | None = None
    loss: float | None = None
    throughput: float | None = None
    eta: float | None = None
    restarts: int | None = None
    resizes: int | None = None
    hosts: tuple[HostDevices, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in ENDED

    @property
    def progress(self) -> float | None:
        """How much of its steps it has made, from 0 to 1."""
        if self.step is None or not self.total_steps:
            return None
        return min(self.step / self.total_steps, 1.0)


@dataclass(frozen=True)
class Device:
    """A device of a host, and the job that has it, if one does."""

    name: str
    job: str | None = None


@dataclass(frozen=True)
class Host:
    """A machine: up, down or draining."""

    name: str
    state: str = "up"
    source: str = ""
    devices: tuple[Device, ...] = ()

    @property
    def used(self) -> int:
        """Devices that a job has."""
        return sum(device.job is not None for device in self.devices)


@dataclass(frozen=True)
class Share:
    """A node of the owners' tree; the root's name is empty.

    Attributes:
        name: of a department or user.
        parent: name of the node above; None for the root.
        weight: of its share, relative to its siblings.
        guarantee: devices that it owns; limit: devices that it may have at most, None without a limit.
        lends: whether others may use its guarantee meanwhile.
        policy: among its children.
        half_life: seconds after which remembered use counts half.
        size: devices that its jobs have now, if the service says so.
    """

    name: str
    parent: str | None = ""
    weight: float = 1.0
    guarantee: float = 0.0
    limit: float | None = None
    lends: bool = True
    policy: str = "fair"
    half_life: float | None = None
    size: int | None = None


def job(data: Any) -> Job:
    """A job from the service's JSON.

    Raises:
        NonsenseError: it is none.
    """
    fields = _fields(Job, data)
    for name in ("command", "allowed"):
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    fields["hosts"] = tuple(
        HostDevices(str(one["host"]), tuple(map(str, one["devices"]))) for one in fields.get("hosts") or ()
    )
    fields["name"] = fields.get("name") or ""
    fields["size"] = fields.get("size") or 0
    return Job(**fields)


def host(data: Any) -> Host:
    """A machine from the service's JSON; a device is a name, or an object with `name` and `job`.

    Raises:
        NonsenseError: it is none.
    """
    fields = _fields(Host, data)
    fields["devices"] = tuple(map(_device, fields.get("devices") or ()))
    fields["source"] = fields.get("source") or ""
    return Host(**fields)


def share(data: Any) -> Share:
    """A node of the owners' tree from the service's JSON.

    Raises:
        NonsenseError: it is none.
    """
    return Share(**_fields(Share, data))


def many(data: Any, name: str) -> Sequence[Mapping[str, Any]]:
    """The list called `name` in an answer.

    Raises:
        NonsenseError: there is none.
    """
    found = data.get(name) if isinstance(data, Mapping) else data
    if not isinstance(found, list):
        raise NonsenseError(
            f"the service's answer has no list of {name}", "client and service may differ in version"
        )
    return found


def _device(data: Any) -> Device:
    return Device(data) if isinstance(data, str) else Device(**_fields(Device, data))


def _fields(kind: type, data: Any) -> dict[str, Any]:
    names = kind.__annotations__
    try:
        fields = {name: data[name] for name in names if name in data}
        required = [name for name in names if not hasattr(kind, name) and fields.get(name) is None]
    except TypeError:
        required = list(names)
        fields = {}
    if required:
        raise NonsenseError(
            f"the service's answer has no {required[0]} of a {kind.__name__.lower()}",
            "client and service may differ in version",
        )
    return fields
