"""What the service says about jobs, machines and shares, as far as it is shown; the rest is ignored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.cli.errors import NonsenseError

ENDED = frozenset({"succeeded", "failed", "stopped"})
VERSIONS = "client and service may differ in version"


@dataclass(frozen=True)
class ListedJob:
    """A job. Fields that the asking user may not see, or that are not known yet, are None.

    Times are unix times, `eta` is in seconds, `throughput` in steps a second, `share` in devices.
    """

    id: str
    owner: str
    state: str
    name: str = ""
    reason: str | None = None
    command: Sequence[str] | None = None
    directory: str | None = None
    min: int | None = None
    max: int | None = None
    tags: Sequence[str] = ()
    comment: str = ""
    allowed: Sequence[int] | None = None
    priority: int | None = None
    weight: float | None = None
    time_limit: float | None = None
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
    hosts: Sequence[Mapping[str, Any]] = ()

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
    reason: str = ""
    changed: float = 0.0
    devices: tuple[Device, ...] = ()

    @property
    def used(self) -> int:
        """Devices that a job has."""
        return sum(device.job is not None for device in self.devices)


@dataclass(frozen=True)
class Share:
    """A node of the owners' tree; the root's name is empty, and its parent None."""

    name: str
    parent: str | None = ""
    weight: float = 1.0
    guarantee: float = 0.0
    limit: float | None = None
    lends: bool = True
    policy: str = "fair"
    half_life: float | None = None
    budget: float | None = None
    used: float | None = None
    size: int | None = None


def job(data: Any) -> ListedJob:
    """A job from the service's JSON; raises `NonsenseError` if it is none."""
    fields = _fields(ListedJob, data)
    defaults = {"name": "", "size": 0, "hosts": ()}
    return ListedJob(**fields | {name: fields.get(name) or value for name, value in defaults.items()})


def host(data: Any) -> Host:
    """A machine from the service's JSON."""
    fields = _fields(Host, data)
    devices = tuple(Device(**_fields(Device, device)) for device in fields.get("devices") or ())
    return Host(**fields | {"devices": devices})


def share(data: Any) -> Share:
    """A node of the owners' tree from the service's JSON."""
    return Share(**_fields(Share, data))


def many(data: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """The list called `name` in an answer; raises `NonsenseError` if there is none."""
    items = data.get(name)
    if not isinstance(items, list):
        raise NonsenseError(f"the service's answer has no list of {name}", VERSIONS)
    return items


def _fields(kind: type, data: Any) -> dict[str, Any]:
    names = kind.__annotations__
    fields = {name: data[name] for name in names if name in data} if isinstance(data, Mapping) else {}
    for name in names:
        if not hasattr(kind, name) and fields.get(name) is None:
            raise NonsenseError(f"the service's answer has no {name} of a {kind.__name__.lower()}", VERSIONS)
    return fields
