"""The picture that `edt top` shows: devices, owners and jobs. Pure functions of what the service said."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edt_launch.cli.model import Host, ListedJob, Share
from edt_launch.cli.screen import WIDEST, bar, columns, cut, moment, number, paint, plural
from edt_launch.cli.terminal.tables import in_order, jobs_table
from edt_launch.core.text.terminal_text import visible

JOB_STYLES = (
    "cyan", "magenta", "yellow", "blue", "green",
    "bright cyan", "bright magenta", "bright yellow", "bright blue", "bright green",
)  # fmt: skip
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FREE, LOST = "·", "x"
MAX_HOSTS = 8  # hosts that get a line of their own
NAME = 16
"""Columns of the name of a host or an owner."""


@dataclass(frozen=True)
class Seen:
    """What the service said at unix time `now`."""

    url: str
    now: float
    hosts: Sequence[Host]
    jobs: Sequence[ListedJob]
    shares: Sequence[Share]


def picture(seen: Seen, limit: int, colours: bool) -> list[str]:
    """The lines, at most `limit` columns wide."""
    live = [job for job in seen.jobs if not job.has_ended]
    marks = {job.id: i for i, job in enumerate(sorted(live, key=lambda job: (job.submitted or 0, job.id)))}
    lines = [_head(seen, live, limit, colours), ""]
    lines += _hosts(seen.hosts, marks, limit, colours)
    lines += ["", *_owners(seen, live, limit, colours), ""]
    sized = {job.id for job in live if job.size}
    ordered = sorted(seen.jobs, key=_order)
    for line in jobs_table(ordered, seen.now, limit - 2, colours):
        job = line.split(" ", 1)[0]
        lines.append(f"{_mark(marks[job], colours) if job in sized else ' '} {line}")
    return [line.rstrip() for line in lines]


def _order(job: ListedJob) -> tuple[bool, bool, float, str]:
    return job.has_ended, job.size == 0, job.submitted or 0, job.id


def _head(seen: Seen, live: Sequence[ListedJob], limit: int, colours: bool) -> str:
    running = sum(job.size > 0 for job in live)
    left = f"edt  {seen.url}"
    right = f"{running} running, {len(live) - running} waiting  {moment(seen.now, seen.now)}"
    left = cut(left, max(limit - columns(right) - 2, 3))
    room = limit if limit < WIDEST else 0  # nothing is aligned where there is no terminal
    gap = " " * max(room - columns(left) - columns(right), 2)
    return paint(left, "bold", colours) + gap + right


def _hosts(hosts: Sequence[Host], marks: Mapping[str, int], limit: int, colours: bool) -> list[str]:
    up = [host for host in hosts if host.state != "down"]
    total, used = sum(len(host.devices) for host in up), sum(host.used for host in up)
    text = f"{used} of {plural(total, 'device')} used"
    lines = [_bar_line("devices", used, total, text, limit, "green", colours)]
    for host in hosts[:MAX_HOSTS]:
        lines += _host(host, marks, limit, colours)
    if len(hosts) > MAX_HOSTS:
        lines.append(f"  and {len(hosts) - MAX_HOSTS} more hosts: edt hosts")
    return lines


def _host(host: Host, marks: Mapping[str, int], limit: int, colours: bool) -> list[str]:
    state = "" if host.state == "up" else f" {host.state}"
    room = limit - NAME - 4 - len(state)
    shown = host.devices if len(host.devices) <= room // 2 else host.devices[: room // 2 - 2]
    cells = [
        _mark(marks[device.job], colours) if device.job is not None and device.job in marks
        else LOST if host.state == "down" else "*" if device.job else paint(FREE, "dim", colours)
        for device in shown
    ]  # fmt: skip
    more = " …" if len(shown) < len(host.devices) else ""
    return [f"  {_padded(host.name, NAME)}  {' '.join(cells)}{more}{paint(state, 'yellow', colours)}"]


def _mark(index: int, colours: bool) -> str:
    """A letter for a job that has devices."""
    return paint(LETTERS[index % len(LETTERS)], JOB_STYLES[index % len(JOB_STYLES)], colours)


def _owners(seen: Seen, live: Sequence[ListedJob], limit: int, colours: bool) -> list[str]:
    has: Counter[str] = Counter()
    due: dict[str, float] = defaultdict(float)
    waits: Counter[str] = Counter()
    parents = {share.name: share.parent for share in seen.shares}
    for job in live:
        name: str | None = job.owner
        while name is not None:
            has[name] += job.size
            due[name] += job.share or 0.0
            waits[name] += job.size == 0
            name = parents.get(name) if name != "" else None
    nodes = [*in_order(seen.shares)]
    nodes += [(Share(name), 0) for name in sorted({job.owner for job in live} - set(parents))]
    total = sum(len(host.devices) for host in seen.hosts if host.state != "down")
    lines = []
    for share, depth in nodes:
        if share.name == "" or share.name not in has:
            continue
        count, waiting = has[share.name], waits[share.name]
        text = f"{count}, share {number(round(due[share.name], 1))}, weight {number(share.weight)}"
        text += f", {waiting} waiting" if waiting else ""
        name = "  " * max(depth - 1, 0) + share.name
        lines.append(_bar_line(name, count, total, text, limit, "cyan", colours))
    return lines or ["no owner has jobs"]


def _bar_line(name: str, part: float, whole: float, text: str, limit: int, style: str, colours: bool) -> str:
    length = max(6, min(40, limit - NAME - 40))
    drawn = bar(part / whole if whole else 0.0, length)
    filled = drawn.rstrip("╌")
    painted = paint(filled, style, colours) + paint(drawn[len(filled) :], "dim", colours)
    return f"{_padded(name, NAME + 2)}  {painted}  {cut(text, limit - NAME - length - 6)}"


def _padded(name: str, wide: int) -> str:
    text = cut(visible(name), wide)
    return text + " " * (wide - columns(text))
