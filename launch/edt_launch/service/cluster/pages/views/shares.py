"""What the page of shares shows of the owners' tree, and the forms that change it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.core.text.durations import duration
from edt_launch.service.cluster.store import fresh
from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Field, Question, overtaken

Json = Mapping[str, Any]

LIST = "/shares"

LABELS: Mapping[str, str] = {
    "parent": "Below",
    "weight": "Weight (its part of what is shared, beside its siblings)",
    "guarantee": "Guarantee (devices that it owns)",
    "limit": "Limit (devices at most; empty: none)",
    "lends": "Lends what it owns and does not use",
    "policy": "Policy among those below it",
    "half_life": "Half-life of remembered use, in seconds",
    "budget": "Budget (GPU hours in all; empty: any number)",
}
"""Fields of the form, in their order."""

SHORT: Mapping[str, str] = {
    "parent": "below", "weight": "weight", "guarantee": "guarantee", "limit": "limit", "lends": "lends",
    "policy": "policy", "half_life": "half-life", "budget": "budget",
}  # fmt: skip

POLICIES: Mapping[str, str] = {
    "fair": "fair: by weights",
    "fifo": "fifo: the first is served first",
    "priority": "priority: the highest is served first",
}


@dataclass(frozen=True)
class SharesView:
    """The tree.

    Attributes:
        nodes: as REST shows them, each before those below it, with its depth.
        devices: of the pool.
        removals: how nodes can go, by their names: a user's one is only reset to what it was at first.
    """

    nodes: Sequence[tuple[Json, int]]
    devices: int
    removals: Mapping[str, str]


def shares(nodes: Sequence[Json], devices: int, users: Collection[str]) -> SharesView:
    """The page of the nodes that REST has shown, of a pool of so many devices; `users` are names of some."""
    above = {node["parent"] for node in nodes}
    free = [node for node in nodes if node["name"] not in (*above, "") and not (node["size"] or node["asks"])]
    removals = {node["name"]: "reset" if node["name"] in users else "remove" for node in free}
    as_at_first = {node["name"] for node in free if node["version"] == fresh(node["name"]).version}
    return SharesView(
        list(in_order(nodes)),
        devices,
        {name: how for name, how in removals.items() if how == "remove" or name not in as_at_first},
    )


def in_order(nodes: Iterable[Json]) -> Iterator[tuple[Json, int]]:
    """Each node before those below it, with its depth."""
    below: dict[str | None, list[Json]] = {}
    for node in nodes:
        below.setdefault(node["parent"], []).append(node)
    waiting = [(node, 0) for node in below.get(None, ())]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(below.get(node["name"], ()))]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def values(node: Json) -> dict[str, str]:
    """What the form of a node begins with."""
    return {
        "parent": node["parent"] or "",
        "weight": _exact(node["weight"]),
        "guarantee": _exact(node["guarantee"]),
        "limit": "" if node["limit"] is None else _exact(node["limit"]),
        "lends": _yes(node["lends"]),
        "policy": node["policy"],
        "half_life": _exact(node["half_life"]),
        "budget": "" if node["budget"] is None else _exact(node["budget"]),
    }


def _exact(value: float) -> str:
    """A number that is read as the same."""
    return repr(float(value)).removesuffix(".0")


def parents(nodes: Iterable[Json], own: str | None) -> list[str]:
    """Names of the nodes that one may be below: neither itself nor those below it; None: a new one."""
    ordered = list(in_order(nodes))
    inside = set() if own is None else {own}
    for node, _ in ordered:
        if node["parent"] in inside:
            inside.add(node["name"])
    return [node["name"] for node, _ in ordered if node["name"] not in inside]


def form(
    name: str | None, version: str, given: Mapping[str, str], nodes: Iterable[Json], error: str = ""
) -> Question:
    """The form of a node.

    Args:
        name: the node's; None for one to be added, whose name is asked for.
        version: that was seen.
        given: what it shows.
        nodes: all that there are.
        error: what was wrong with what it was sent with.
    """
    options = {
        "parent": [(parent, parent or wording.EVERYBODY) for parent in parents(nodes, name)],
        "lends": [("yes", "yes"), ("no", "no")],
        "policy": list(POLICIES.items()),
    }
    fields = [
        Field(field, label, given.get(field, ""), options=options.get(field, ()))
        for field, label in LABELS.items()
        if field != "parent" or name != ""
    ]
    if name is None:
        fields.insert(0, Field("name", "Name", given.get("name", ""), is_number=False))
    return Question(
        "Add" if name is None else "Edit",
        "a share" if name is None else f"the share of {name or wording.EVERYBODY}",
        [],
        LIST,
        fields,
        [("version", version)],
        error,
        can_foresee=True,
        is_possible=False,
    )


def preview(
    name: str,
    before: Mapping[str, str],
    given: Mapping[str, str],
    hidden: Mapping[str, str],
    changes: Sequence[Json],
) -> Question:
    """The question whether a change is to be saved: what it is, and who gains and loses by it."""
    different = [
        f"{SHORT[field].capitalize()}: {_told(field, before[field])} → {_told(field, value)}."
        for field, value in given.items()
        if value != before[field]
    ]
    gain, lose = (
        [one for one in changes if (one["to"] > one["from"]) is is_more] for is_more in (True, False)
    )
    effect = [
        *(different or ["Nothing is different."]),
        *([f"Gain: {len(gain)}.", *sentences(gain)] if gain else []),
        *([f"Lose: {len(lose)}.", *sentences(lose)] if lose else []),
        *([] if changes else sentences([])),
    ]
    return Question(
        "Save", f"the share of {name or wording.EVERYBODY}", effect, LIST, hidden=list(hidden.items())
    )


def removal(node: Json, changes: Sequence[Json], *, is_user: bool) -> Question:
    """The question whether a node is to be removed, or a user's one reset; `changes` come of it."""
    defaults = f"It has the defaults from then on: weight 1, no guarantee, below {wording.EVERYBODY}."
    effect = [*([defaults] if is_user else ["It is gone from the tree."]), *sentences(changes)]
    return Question(
        "Reset" if is_user else "Remove",
        f"the share of {node['name']}",
        effect,
        LIST,
        hidden=[("version", node["version"])],
        command=f"edt shares {node['name']} --remove",
    )


def _told(field: str, value: str) -> str:
    if field == "half_life" and value:
        return duration(float(value))
    return value or {"parent": wording.EVERYBODY, "limit": "none", "budget": "none"}.get(field, wording.NONE)


def quicker(told: str, given: Mapping[str, str], present: Mapping[str, str]) -> str:
    """What is said to somebody whose change came second: `told`, and what is different now."""
    ours, theirs = ({field: _told(field, value) for field, value in one.items()} for one in (given, present))
    compared = {field: SHORT[field] for field in present}
    return overtaken(told, compared, ours, theirs)
