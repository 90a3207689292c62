"""``edt ps``, ``show``, ``why``, ``set``, ``stop``, ``pause`` and ``resume``."""

import textwrap
import time
from collections.abc import Sequence
from typing import Annotated

from typer import Argument, Option

from edt_launch.cli import model
from edt_launch.cli.client.service import Json
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.model import ENDED
from edt_launch.cli.screen import note, terminal, width
from edt_launch.cli.screen import show as show_lines
from edt_launch.cli.session import AsJson, JobName, LiveJobs, answer, confirm, connect, print_json
from edt_launch.cli.terminal.tables import course_lines, job_lines, jobs_table
from edt_launch.cli.times import moment
from edt_launch.cli.times import time_limit as limit_of
from edt_launch.core.text.terminal_text import visible
from edt_launch.core.text.written import words

POINTS = 100
"""Points of a course at most: REST's least."""

DONE = {"stop": "stopped", "pause": "paused", "resume": "resumed"}
UNDER_WAY = {"stop": ENDED | {"stopping"}, "pause": {"pausing", "paused"}}
"""States of a job that does what was asked; for `resume` all others than those of `pause`."""


def ps(
    everything: Annotated[bool, Option("--all", "-a", help="Include jobs that ended long ago.")] = False,
    state: Annotated[str | None, Option(help="Only jobs in these states, such as running,queued.")] = None,
    owner: Annotated[str | None, Option(help="Only jobs of these users, separated by commas.")] = None,
    text: Annotated[str | None, Option(help="Only jobs with this text in their name or comment.")] = None,
    tag: Annotated[str | None, Option(help="Only jobs with this tag.")] = None,
    host: Annotated[str | None, Option(help="Only jobs with devices on this host.")] = None,
    experiment: Annotated[str | None, Option(help="Only runs of this experiment, by id.")] = None,
    search: Annotated[str | None, Option(help="Only trials of this search, by id.")] = None,
    since: Annotated[
        str | None, Option(help="Only those submitted since then: 10m ago, or a time: 2026-03-01T12:30.")
    ] = None,
    mine: Annotated[bool, Option("--mine", "-m", help="Only your own jobs.")] = False,
    watch: Annotated[bool, Option("--watch", "-w", help="Keep updating until q or Ctrl-C.")] = False,
    only_ids: Annotated[bool, Option("--quiet", "-q", help="Print ids only.")] = False,
    as_json: AsJson = False,
) -> None:
    """List live jobs, and those that ended in the last hour.

    SIZE is the number of workers, OF what a job may have; 2→4 is a change under way.
    """
    service = connect()
    if mine:
        owner = str(service.about()["user"])

    def ask() -> list[Json]:
        submitted = moment("--since", since, time.time())
        wanted = {"state": state, "owner": owner, "text": text, "host": host}
        wanted |= {"tag": tag, "experiment": experiment}
        found = service.jobs(everything=everything, **wanted, search=search, submitted_since=submitted)
        return list(found)

    def look() -> list[str]:
        jobs = list(map(model.job, ask()))
        if only_ids:
            return [job.id for job in jobs]
        if not jobs and any((state, owner, text, tag, host, experiment, search, since)):
            return ["no such jobs" if everything else "no such jobs; those that ended long ago: edt ps --all"]
        return jobs_table(jobs, time.time(), *terminal())

    if watch:
        from edt_launch.cli.terminal.refresh import watch_lines, watch_values

        watch_values(ask, "jobs") if as_json else watch_lines(look)
    elif as_json:
        print_json({"jobs": ask()})
    else:
        show_lines(look())


def show(
    job: JobName,
    series: Annotated[bool, Option("--series", help="Show its reported metrics over time instead.")] = False,
    value: Annotated[
        list[str] | None, Option("--value", help="With --series: a reported metric. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show everything about a job, or its course."""
    service = connect()
    job_id = service.resolve(job)
    if value and not series:
        raise MistakenError(
            "--value is of no use without --series", f"edt show {job_id} --series --value NAME"
        )
    if series:
        course = service.course(job_id, value or (), POINTS)
        answer(course, as_json, lambda: course_lines(course, value or (), *terminal()))
    else:
        data = service.job(job_id)
        answer(data, as_json, lambda: job_lines(model.job(data), time.time(), *terminal()))


def why(job: JobName, as_json: AsJson = False) -> None:
    """Explain why a job has its size: its share, what binds, and what would change it."""
    service = connect()
    data = service.call("GET", "jobs", service.resolve(job), "why")
    limit = width()
    answer(data, as_json, lambda: [part for line in data["lines"] for part in _wrapped(visible(line), limit)])


def _wrapped(line: str, limit: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, limit, subsequent_indent=indent + "  ", break_on_hyphens=False) or [""]


def change(
    job: JobName,
    least: Annotated[int | None, Option("--min", min=1, help="Minimum number of workers.")] = None,
    most: Annotated[int | None, Option("--max", min=1, help="Maximum number of workers.")] = None,
    priority: Annotated[int | None, Option(help="Priority; higher ones are served first.")] = None,
    weight: Annotated[float | None, Option(help="Weight of its share, relative to your other jobs.")] = None,
    name: Annotated[str | None, Option(help="New name.")] = None,
    tags: Annotated[
        str | None, Option(metavar="TAG,...", help='All of its tags, separated by commas; "": none.')
    ] = None,
    comment: Annotated[str | None, Option(help='A remark, shown with the job; "": none.')] = None,
    time_limit: Annotated[
        str | None, Option("--time", help="Time limit: minutes, HH:MM:SS or D-HH:MM; 0: none.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a job, also while it runs; its name, tags and comment also after its end."""
    options: Json = {"min": least, "max": most, "priority": priority, "weight": weight, "name": name}
    options |= {"tags": words(tags), "comment": comment, "time_limit": limit_of("--time", time_limit)}
    changes = {option: value for option, value in options.items() if value is not None}
    if not changes:
        raise MistakenError(
            "nothing is to be changed",
            "give one of --min, --max, --priority, --weight, --name, --tags, --comment, --time",
        )
    service = connect()
    job_id = service.resolve(job)
    before = service.call("GET", "jobs", job_id)
    data = service.call("PATCH", "jobs", job_id, content=changes)

    def lines() -> list[str]:
        done = [f"{job_id}: {_changed(option, before.get(option), data.get(option))}" for option in changes]
        note = [data["note"]] if data.get("note") else []
        return [*map(visible, done), *note]

    answer(data, as_json, lines)


def _changed(option: str, before: object, after: object) -> str:
    """What has become of one of a job's values."""
    then, now = _in_words(before), _in_words(after)
    return f"{option} is {now} already" if then == now else f"{option} was {then}, is {now}"


def _in_words(value: object) -> str:
    text = ", ".join(value) if isinstance(value, list) else value
    return "empty" if text in (None, "") else str(text)


def stop(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """End jobs for good; what they have saved stays."""
    _ask("stop", jobs, as_json)


def pause(
    jobs: LiveJobs,
    force: Annotated[
        bool, Option("--force", help="Also jobs that cannot save their work; they begin again when resumed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have jobs save their state and give up their devices, until they are resumed."""
    _ask("pause", jobs, as_json, {"force": True} if force else None)


def resume(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """Let paused jobs go on from where they were, as soon as there are devices for them."""
    _ask("resume", jobs, as_json)


def remove(
    jobs: Annotated[list[str], Argument(metavar="JOB...", help="Ids, beginnings of ids, or names.")],
    as_json: AsJson = False,
) -> None:
    """Delete jobs that have ended, with all that they have made: models, logs and checkpoints, too."""
    service = connect()
    ids = list(dict.fromkeys(service.resolve(name) for name in jobs))
    for job_id in ids:
        service.order("DELETE", "jobs", job_id)
    confirm({"deleted": ids}, as_json, f"{', '.join(ids)} deleted")


def _ask(verb: str, names: Sequence[str], as_json: bool, query: Json | None = None) -> None:
    """All names are looked up first: a mistyped one changes nothing."""
    service = connect()
    ids = [service.resolve(name) for name in names]
    answers = [service.call("POST", "jobs", job_id, verb, query=query) for job_id in dict.fromkeys(ids)]
    if as_json:
        print_json({"jobs": answers})
        return
    for job in answers:
        note(_response(verb, job))


def _response(verb: str, job: Json) -> str:
    """What a job does about a request, in a line. A state that is about to end needs no reason."""
    state = job.get("state")
    is_heard = state in UNDER_WAY[verb] if verb in UNDER_WAY else state not in UNDER_WAY["pause"]
    if not is_heard:
        return f"{job.get('id')} is {state} and is going to be {DONE[verb]}"
    reason = f": {visible(job['reason'])}" if job.get("reason") else ""
    return f"{job.get('id')} {state}{reason}"
