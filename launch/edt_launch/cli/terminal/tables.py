"""Jobs, searches, machines and shares as tables and lines: pure functions of what the service said."""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from edt_launch.cli import model
from edt_launch.cli.model import Host, ListedJob, Share
from edt_launch.cli.screen import (
    STATE_STYLES,
    Cell,
    Column,
    Columns,
    bar,
    cut,
    listing,
    moment,
    number,
    paint,
    plural,
    state_cell,
    table,
)
from edt_launch.core.history.failure_text import cause
from edt_launch.core.text.durations import duration
from edt_launch.core.text.terminal_text import visible

BAR, WIDE = 10, 100
"""Columns of a bar in a table, and of a terminal that has room for bars."""


def jobs_table(jobs: Sequence[ListedJob], now: float, limit: int, colours: bool) -> list[str]:
    """The jobs, one a line, and below it what is worth knowing of those that failed or wait."""
    if not jobs:
        return ["no jobs; queue one with: edt submit --min 1 --max 4 -- python train.py"]
    length = BAR if limit >= WIDE else 0
    columns: Columns[ListedJob] = {
        Column("ID"): lambda job: job.id,
        Column("NAME", least=8): lambda job: visible(job.name) or "-",
        Column("OWNER", least=5, optional=True): lambda job: visible(job.owner),
        Column("STATE"): lambda job: state_cell(job.state),
        Column("SIZE", right=True): _size,
        Column("OF", right=True, optional=True): _range,
        Column("PROGRESS", optional=True): lambda job: _progress(job, length),
        Column("LEFT", right=True, optional=True): _left,
        Column("SINCE", right=True, optional=True): lambda job: duration(now - _since(job)),
    }
    return noted(listing(columns, jobs, limit, colours), map(_note, jobs), limit, colours)


def course_lines(course: Mapping[str, Any], names: Sequence[str], limit: int, colours: bool) -> list[str]:
    """What a job has reported over time, a line a point; of `names`, or of its loss."""
    if not course["time"]:
        return ["nothing has been reported yet"]
    shown = {name: course["values"][name] for name in names or ("loss",)}
    columns: Columns[int] = {
        Column("STEP", right=True): lambda at: f"{course['step'][at]}",
        Column("TRAINING", right=True): lambda at: duration(course["training"][at]),
        Column("WORKERS", right=True): lambda at: f"{course['size'][at]}",
        Column("STEPS/S", right=True): lambda at: _precise(course["throughput"][at]),
        **{Column(visible(name), right=True): partial(_value, values) for name, values in shown.items()},
    }
    others = [visible(name) for name in course["names"] if name not in shown]
    lines = listing(columns, range(len(course["time"])), limit, colours)
    return [*lines, f"--value shows others: {', '.join(others)}"] if others else lines


def _value(values: Sequence[float | None], at: int) -> str:
    return _precise(values[at])


def _precise(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def noted(lines: Sequence[str], notes: Iterable[str], limit: int, colours: bool) -> list[str]:
    """A table with a line below each row that has a note."""
    found = [lines[0]]
    for line, note in zip(lines[1:], notes, strict=True):
        found.append(line)
        if note:
            found.append("  " + paint(cut(f"↳ {note}", limit - 2), "dim", colours))
    return found


def _size(job: ListedJob) -> str:
    """Its workers, and how many they are going to be where that is something else."""
    if job.has_ended:
        return "-"
    return f"{job.size}" if job.target is None or job.target == job.size else f"{job.size}→{job.target}"


def _range(job: ListedJob) -> str:
    if job.min is None or job.max is None:
        return "-"
    return f"{job.min}" if job.min == job.max else f"{job.min}-{job.max}"


def _progress(job: ListedJob, length: int) -> str:
    """A bar of that length and a percentage, or the number of steps."""
    if job.progress is not None:
        return f"{bar(job.progress, length)} {job.progress:4.0%}".strip()
    return f"step {job.step}" if job.step is not None else "-"


def _left(job: ListedJob) -> str:
    return duration(job.eta) if job.state == "running" else "-"


def _since(job: ListedJob) -> float:
    """When its present part of life began."""
    if job.has_ended and job.ended is not None:
        return job.ended
    return (job.started if job.size else None) or job.submitted or 0.0


def _note(job: ListedJob) -> str:
    """What a user may want to know of it: why it failed, or waits."""
    if job.state == "failed":
        return visible(cause(job.failure) or ("" if job.exit_code is None else f"exit code {job.exit_code}"))
    return visible(job.reason or "") if job.state == "queued" else ""


def job_lines(job: ListedJob, now: float, limit: int, colours: bool) -> list[str]:
    """Everything about a job."""
    named = f"{job.id}  {visible(job.name)}".rstrip()
    state = paint(job.state, STATE_STYLES.get(job.state, ""), colours)
    since = f"{moment(_since(job), now)} ({duration(now - _since(job))})"
    facts = [("job", f"{named}  of {visible(job.owner)}"), ("state", f"{state} since {since}")]
    if job.reason:
        facts.append(("", visible(job.reason)))
    if job.failure or (job.exit_code or 0) != 0:
        code = "" if job.exit_code is None else f"exit code {job.exit_code}"
        facts.append(("failure", ": ".join(filter(None, (code, visible(job.failure or ""))))))
    facts.append(("size", _sizes(job)))
    held = [f"{one['host']}: {', '.join(one['devices'])}" for one in job.hosts]
    facts += [("" if i else "devices", text) for i, text in enumerate(held)]
    facts += _progress_facts(job, limit)
    if job.tags:
        facts.append(("tags", visible(", ".join(job.tags))))
    if job.comment:
        facts.append(("comment", visible(job.comment)))
    if job.priority is not None:
        facts.append(("priority", f"{job.priority}, weight {number(job.weight)}"))
    if job.time_limit:
        facts.append(("may run", duration(job.time_limit)))
    if job.command is not None:
        facts.append(("command", visible(shlex.join(job.command))))
    if job.directory not in (None, "", "."):
        facts.append(("in", visible(str(job.directory))))
    times = [("submitted", job.submitted), ("started", job.started), ("ended", job.ended)]
    facts.append(("times", ", ".join(f"{name} {moment(at, now)}" for name, at in times if at is not None)))
    if job.resizes is not None or job.restarts is not None:
        resizes, restarts = plural(job.resizes or 0, "resize"), plural(job.restarts or 0, "restart")
        facts.append(("changes", f"{resizes}, {restarts}"))
    return [line for name, text in facts for line in _fact(name, text, limit, colours)]


def _sizes(job: ListedJob) -> str:
    parts = [plural(job.size, "worker")]
    if job.min is not None and job.max is not None:
        parts[0] += f" of {job.min} to {job.max}"
    if job.allowed:
        parts.append(f"allowed {', '.join(map(str, job.allowed))}")
    if job.target is not None and job.target != job.size and not job.has_ended:
        parts.append(f"on the way to {job.target}")
    if job.share is not None and not job.has_ended:
        parts.append(f"fair share {number(job.share)}")
    return ", ".join(parts)


def _progress_facts(job: ListedJob, limit: int) -> list[tuple[str, str]]:
    if job.step is None:
        return []
    length = max(10, min(40, limit - 50))
    drawn = f"{bar(job.progress, length)} {job.progress:.0%}, " if job.progress is not None else ""
    steps = f"step {job.step}" + (f" of {job.total_steps}" if job.total_steps else "")
    values = []
    if job.loss is not None:
        values.append(f"loss {number(job.loss)}")
    if job.throughput is not None:
        values.append(f"{number(job.throughput)} steps a second")
    if job.eta is not None and not job.has_ended:
        values.append(f"{duration(job.eta)} left")
    facts = [("progress", drawn + steps)]
    return [*facts, ("", ", ".join(values))] if values else facts


def _fact(name: str, text: str, limit: int, colours: bool) -> list[str]:
    room = max(limit - 11, 20)
    lines = [text] if "\x1b" in text else textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    head = paint(f"{name:9}", "bold", colours)
    return [f"{head}  {lines[0]}".rstrip(), *(f"{'':11}{line}" for line in lines[1:])]


HOST_COLUMNS = (
    Column("HOST", least=8),
    Column("STATE"),
    Column("USED", right=True, optional=True),
    Column("DEVICE"),
    Column("JOB"),
    Column("OWNER", least=5, optional=True),
    Column("NAME", least=5, optional=True),
)


def hosts_table(
    hosts: Sequence[Host], jobs: Mapping[str, ListedJob], now: float, limit: int, colours: bool
) -> list[str]:
    """The machines, a line for each device."""
    if not hosts:
        return ["no hosts"]
    rows, notes = [], []
    for host in hosts:
        rows += (own := list(_host_rows(host, jobs)))
        notes += [_host_note(host, now), *("" for _ in own[1:])]
    return noted(table(HOST_COLUMNS, rows, limit, colours), notes, limit, colours)


def _host_note(host: Host, now: float) -> str:
    """Since when it is in its state, and why, if it is not up."""
    return f"since {moment(host.changed, now)}: {visible(host.reason)}" if host.reason else ""


def _host_rows(host: Host, jobs: Mapping[str, ListedJob]) -> Iterator[Sequence[Cell | str]]:
    style = {"up": "green", "down": "red", "draining": "yellow"}.get(host.state, "")
    used = f"{host.used} of {len(host.devices)}"
    head: Sequence[Cell | str] = (visible(host.name), Cell(host.state, style), used)
    if not host.devices:
        yield *head, "", "", "", ""
    for device in host.devices:
        job = jobs.get(device.job or "")
        names = (visible(job.owner), visible(job.name)) if job else ("", "")
        yield *head, visible(device.name), device.job or Cell("free", "dim"), *names
        head = ("", "", "")


def changes_table(rehearsal: Mapping[str, Any], nothing: str, limit: int, colours: bool) -> list[str]:
    """Whose number of workers something would change; `nothing` is said if nobody's."""
    changes = model.many(rehearsal, "changes")
    if not changes:
        return [nothing]
    columns: Columns[Mapping[str, Any]] = {
        Column("JOB"): lambda change: visible(change.get("job") or "(new)"),
        Column("NAME", least=6): lambda change: visible(change.get("name") or "-"),
        Column("OWNER", least=5): lambda change: visible(change.get("owner") or "-"),
        Column("NOW", right=True): lambda change: str(int(change.get("from") or 0)),
        Column("THEN", right=True): _then,
    }
    notes = [visible(change.get("reason") or "") for change in changes]
    return noted(listing(columns, changes, limit, colours), notes, limit, colours)


def _then(change: Mapping[str, Any]) -> Cell:
    before, after = int(change.get("from") or 0), int(change.get("to") or 0)
    return Cell(str(after), "green" if after > before else "red" if after < before else "")


def shares_table(shares: Sequence[Share], limit: int, colours: bool) -> list[str]:
    """The owners' tree, indented."""
    depths = {share.name: depth for share, depth in in_order(shares)}
    columns: Columns[Share] = {
        Column("OWNER", least=12): lambda share: (
            "  " * depths[share.name] + (visible(share.name) or "everybody")
        ),
        Column("WEIGHT", right=True): lambda share: number(share.weight),
        Column("HAS", right=True): lambda share: "-" if share.size is None else str(share.size),
        Column("OWNS", right=True): lambda share: number(share.guarantee or None),
        Column("LIMIT", right=True): lambda share: number(share.limit),
        Column("LENDS", optional=True): lambda share: (
            ("yes" if share.lends else "no") if share.guarantee else "-"
        ),
        Column("INSIDE", least=4, optional=True): lambda share: share.policy,
        Column("HALF-LIFE", right=True, optional=True): lambda share: duration(share.half_life),
        Column("USED", right=True): lambda share: _hours(share.used),
        Column("BUDGET", right=True): lambda share: _hours(share.budget),
    }
    return listing(columns, [share for share, _ in in_order(shares)], limit, colours)


def _hours(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g} h"


def in_order(shares: Sequence[Share]) -> list[tuple[Share, int]]:
    """The nodes, each before those below it, with their depth; those whose parent is not there come first."""
    names = {share.name for share in shares}
    below: dict[str | None, list[Share]] = {}
    for share in sorted(shares, key=lambda share: share.name):
        is_top = share.parent not in names or share.name == ""
        below.setdefault(None if is_top else share.parent, []).append(share)

    def visit(parent: str | None, depth: int) -> Iterator[tuple[Share, int]]:
        for share in below.get(parent, []):
            yield share, depth
            yield from visit(share.name, depth + 1)

    return list(visit(None, 0))


def searches_table(searches: Sequence[Mapping[str, Any]], now: float, limit: int, colours: bool) -> list[str]:
    """The searches, one a line."""
    if not searches:
        return ["no searches; create one with: edt search create FILE.json"]
    columns: Columns[Mapping[str, Any]] = {
        Column("ID"): lambda one: visible(one.get("id")),
        Column("NAME", least=8): lambda one: visible(one.get("name") or "-"),
        Column("OWNER", least=5, optional=True): lambda one: visible(one.get("owner") or "-"),
        Column("STATE"): lambda one: state_cell(str(one.get("state"))),
        Column("DONE", right=True): _done,
        Column("FAILED", right=True, optional=True): lambda one: str(_counts(one).get("failed", 0)),
        Column("METRIC", least=6, optional=True): lambda one: visible(one.get("metric") or "-"),
        Column("BEST", right=True): lambda one: number((one.get("best") or {}).get("metric")),
        Column("AGE", right=True, optional=True): lambda one: duration(
            now - float(one.get("created") or now)
        ),
    }
    return listing(columns, searches, limit, colours)


def search_lines(search: Mapping[str, Any], limit: int, colours: bool) -> list[str]:
    """A search and its trials, the best first; then those without a metric."""
    sign = -1 if search.get("objective") == "maximize" else 1
    trials = sorted(
        search.get("trials") or (),
        key=lambda one: (one["metric"] is None, sign * (one["metric"] or 0), one["number"]),
    )
    names = ("name", "owner", "state", "algorithm", "objective", "metric")
    name, owner, state, algorithm, objective, metric = (visible(search.get(name)) for name in names)
    head = f"{name} of {owner}: {state}, {_done(search)} trials; {algorithm} is to {objective} {metric}"
    found = [cut(head, limit), *([visible(search["reason"])] if search.get("reason") else [])]
    columns: Columns[Mapping[str, Any]] = {
        Column("TRIAL", right=True): lambda one: str(one.get("number")),
        Column("STATE"): lambda one: state_cell(str(one.get("state"))),
        Column("METRIC", right=True): lambda one: number(one.get("metric")),
        Column("JOB"): lambda one: visible(one.get("job") or "-"),
        Column("PARAMETERS", least=10): lambda one: visible(
            ", ".join(f"{name}={value}" for name, value in (one.get("parameters") or {}).items())
        ),
    }
    reasons = [visible(one["reason"]) if one.get("state") == "failed" else "" for one in trials]
    return found + noted(listing(columns, trials, limit, colours), reasons, limit, colours)


def _counts(search: Mapping[str, Any]) -> Mapping[str, int]:
    return search.get("counts") or {}


def _done(search: Mapping[str, Any]) -> str:
    """Trials that have come to something, and how many there are to be."""
    counts, total = _counts(search), search.get("total")
    done = counts.get("succeeded", 0) + counts.get("failed", 0)
    return f"{done}" if total is None else f"{done} of {total}"
