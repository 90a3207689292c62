"""What the page of users shows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.accounts.sessions import IDLE
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Question


@dataclass(frozen=True)
class User:
    """Somebody who may use the service.

    Attributes:
        below: the node of the owners' tree that they are below; empty for the root.
        jobs, devices: that have not ended; that these have.
        hours: of devices that their jobs had in the last seven days.
        tokens: that open something, without browsers.
        seen: when they last used a page; None if that is not known.
    """

    name: str
    is_admin: bool
    added: float
    below: str
    jobs: int
    devices: int
    hours: str
    tokens: int
    seen: float | None


def rows(
    users: Iterable[UserRecord],
    tokens: Iterable[TokenRecord],
    live: Iterable[HolderRecord],
    shares: Iterable[ShareRecord],
    hours: Mapping[str, float],
    now: float,
) -> list[User]:
    """A row for each user; `hours` are those of devices that their jobs had."""
    parents = {share.name: share.parent or "" for share in shares}
    jobs, devices, counts = Counter[str](), Counter[str](), Counter[str]()
    seen: dict[str, float] = {}
    for job in live:
        jobs[job.owner] += 1
        devices[job.owner] += sum(len(names) for _, names in job.held)
    for token in tokens:
        if token.idle_until is not None:
            seen[token.user] = max(seen.get(token.user, 0.0), token.idle_until - IDLE)
        elif token.opens(now):
            counts[token.user] += 1
    return [
        User(
            user.name,
            user.is_admin,
            user.created,
            parents.get(user.name, ""),
            jobs[user.name],
            devices[user.name],
            wording.number(hours.get(user.name, 0.0), 1),
            counts[user.name],
            seen.get(user.name),
        )
        for user in users
    ]


def removal(name: str) -> Question:
    """The question about removing somebody."""
    effect = (
        "Their tokens and browsers are refused from then on. Their jobs stay: their owner is called"
        f" {name}~1, or with the next free number, so that nobody who is added as {name} later gets them."
    )
    command = f"edt users remove {name}"
    return Question("Remove", name, [effect], "/users", command=command)
