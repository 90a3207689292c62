"""``edt hosts``, ``edt drain`` and ``edt shares``: the pool, and who shares it."""

import time
from typing import Annotated

from typer import Argument, Option

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import note, show, terminal
from edt_launch.cli.session import AsJson, answer, complete_host, confirm, connect, print_json
from edt_launch.cli.terminal.tables import changes_table, hosts_table, shares_table
from edt_launch.core.text.terminal_text import visible

NO_LIMIT = "none"
ROOT = "-"
"""Stands for the node above all others, whose name is empty."""


def hosts(as_json: AsJson = False) -> None:
    """List machines, their devices, and the jobs that have them."""
    service = connect()
    cluster = service.call("GET", "cluster")
    if as_json:
        print_json(cluster)
        return
    jobs = {job.id: job for job in map(model.job, service.jobs())}
    show(hosts_table(service.hosts(), jobs, time.time(), *terminal()))
    if waiting := cluster.get("waiting"):
        note(f"the pool is {visible(waiting)}")


def drain(
    host: Annotated[str, Argument(metavar="HOST", help="Name.", autocompletion=complete_host)],
    undo: Annotated[bool, Option("--undo", help="Undo: allow workers on the host again.")] = False,
    force: Annotated[
        bool, Option("--force", help="Also end jobs that cannot save their work; they begin again elsewhere.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show which jobs would grow and shrink.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a host no new workers, and move away those that it has. For administrators.

    Jobs that cannot save their work stay until they end, unless --force is given.
    """
    query = {name: True for name, is_given in (("force", force), ("dry_run", dry_run)) if is_given}
    data = connect().call("POST", "hosts", host, "undrain" if undo else "drain", query=query or None)
    if dry_run:
        answer(data, as_json, lambda: changes_table(data, "no job would change now", *terminal()))
        for job in data.get("staying", ()) if not as_json else ():
            note(f"{visible(job)}, and would stay until it ends; with --force it would be ended")
        return
    confirm(data, as_json, f"{data['name']} {data['state']}")
    for job in data.get("staying", ()) if not as_json else ():
        note(f"{visible(job)}, and stays until it ends; to end it now: edt drain --force {data['name']}")


def shares(
    name: Annotated[
        str | None,
        Argument(metavar="[OWNER]", help="Department or user to change or add; - for the root."),
    ] = None,
    weight: Annotated[float | None, Option(help="Weight of its share, relative to its siblings.")] = None,
    guarantee: Annotated[float | None, Option(help="Number of devices it is guaranteed.")] = None,
    limit: Annotated[str | None, Option(help="Maximum number of devices, or none.")] = None,
    lends: Annotated[
        bool | None, Option("--lends/--keeps", help="Whether others may use its unused guarantee.")
    ] = None,
    parent: Annotated[str | None, Option(help="Parent department; - for none.")] = None,
    policy: Annotated[str | None, Option(help="Policy among its children: fair, fifo or priority.")] = None,
    half_life: Annotated[float | None, Option(help="Half-life of remembered use, in seconds.")] = None,
    budget: Annotated[str | None, Option(help="Device hours that its jobs may use in all; or none.")] = None,
    remove: Annotated[
        bool, Option("--remove", help="Remove it; it must have no jobs and no children.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show which jobs would grow and shrink.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show who shares the devices, and how; with OWNER and options, change it (for administrators)."""
    options = {
        "weight": weight, "guarantee": guarantee, "limit": limit, "lends": lends, "parent": parent,
        "policy": policy, "half_life": half_life, "budget": budget,
    }  # fmt: skip
    changes: dict[str, object] = {option: value for option, value in options.items() if value is not None}
    if remove:
        if changes:
            raise MistakenError(f"--remove and {_option(changes)} are both given", "give one of them")
        if name is None:
            raise MistakenError("--remove: which owner?", "edt shares OWNER --remove")
        _remove(name, dry_run, as_json)
        return
    if changes and name is None:
        raise MistakenError(f"{_option(changes)} of whom?", "edt shares OWNER --weight 3")
    changes |= {
        name: _number(f"--{name}", text, what)
        for name, text, what in (("limit", limit, "devices"), ("budget", budget, "hours of devices"))
        if text is not None
    }
    if parent == ROOT:
        changes["parent"] = ""
    service = connect()
    if name is not None and changes:
        data = service.call(
            "PUT", "shares", name, content=changes, query={"dry_run": True} if dry_run else None
        )
        if dry_run:
            answer(data, as_json, lambda: changes_table(data, "no job would change now", *terminal()))
            return
        if as_json:
            print_json(data)
            return
        name = None  # all of them, since a share is relative to others
    nodes = model.many(service.call("GET", "shares"), "shares")
    if name is not None:
        nodes = [node for node in nodes if node.get("name") == ("" if name == ROOT else name)]
        if not nodes or not name:
            raise MistakenError(f"there is no owner {name!r}", "see 'edt shares', or give --weight to add it")
    answer({"shares": nodes}, as_json, lambda: shares_table([*map(model.share, nodes)], *terminal()))


def _option(changes: dict[str, object]) -> str:
    return f"--{next(iter(changes))}".replace("_", "-")


def _remove(name: str, dry_run: bool, as_json: bool) -> None:
    service = connect()
    if dry_run:
        data = service.call("DELETE", "shares", name, query={"dry_run": True})
        answer(data, as_json, lambda: changes_table(data, "no job would change now", *terminal()))
        return
    service.order("DELETE", "shares", name)
    confirm({"removed": name}, as_json, f"{name} is removed from the owners' tree")


def _number(option: str, text: str, what: str) -> float | None:
    if text == NO_LIMIT:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise MistakenError(f"{option} {text}: expected a number of {what}, or {NO_LIMIT}")
    return value
