"""What can be done with a job after a page has asked: stop, pause, resume, change, clone, delete."""

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, Field, Json, ValidationError

from edt_launch.core.text import written
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.http import problems
from edt_launch.service.jobs import answers, service
from edt_launch.service.jobs.forecast.forecast import effects, forecast
from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.jobs.forecast.losing import loss
from edt_launch.service.jobs.pages.views.job import UNDONE_BY, actions
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.jobs.specification import ANNOTATIONS, JobChange
from edt_launch.service.jobs.states import Wanted
from edt_launch.service.jobs.submission import Submission, like
from edt_launch.service.web import asking
from edt_launch.service.web.actions import Action, Asked, NoFields, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import Text, parsed, words

WANTED: Mapping[str, Wanted] = {"stop": Wanted.STOP, "pause": Wanted.PAUSE, "resume": Wanted.RUN}

LABELS: Mapping[str, str] = {
    "min": "Minimum workers",
    "max": "Maximum workers",
    "priority": "Priority (higher first)",
    "weight": "Weight (within your share)",
    "name": "Name",
    "tags": "Tags",
    "comment": "Comment",
}
"""What can be changed of a job; of one that has ended, only `ANNOTATIONS`."""

CHANGE = (
    "Other jobs may grow or shrink by that. A running job keeps to the bounds that it was started with: wider"
    " ones count after it has been paused and resumed."
)

ANNOTATED = "It is the name under which the job is listed, and what is said of it. Everybody sees it."

CLONED: Mapping[str, str] = {"name": "Name", "command": "Command", **LABELS}
"""What can be different of another job like it."""


class ForceField(BaseModel):
    """Whether the work of a job may be lost: the question has said that it would be."""

    force: bool = False


class SettingsFields(BaseModel):
    """Of a job; `seen` is how it was when the form was made: what others have changed since is not undone."""

    min: str = Field("", max_length=256)
    max: str = Field("", max_length=256)
    priority: Text = ""
    weight: Text = ""
    name: Text = ""
    tags: Text = ""
    comment: Text = ""
    seen: Json[dict[str, str]] = Field("{}", max_length=2000, validate_default=True)

    @property
    def values(self) -> dict[str, str]:
        """What is written."""
        return {name: getattr(self, name) for name in LABELS}


class CloneFields(SettingsFields):
    """Of another job; it goes on from the `checkpoint` of that name, if one is given."""

    command: Text = ""
    checkpoint: str = Field("", max_length=32)


def _job(asked: Asked) -> JobRecord:
    return asked.context.job_of(asked.id, asked.user)


def _able(asked: Asked, action: str) -> tuple[JobRecord, Job]:
    """The job, to which that can be done now."""
    job = _job(asked)
    shown = answers.job(job)
    if action not in actions(shown):
        raise ConflictError(f"{job.id} is {job.state}", "look at its page for what can be done")
    return job, shown


# Stopping, pausing, resuming, deleting.


def _ask(action: str, asked: Asked) -> Question:
    job, shown = _able(asked, action)
    foreseen = effects(asked.context, [service.wanting(job, WANTED[action])]) if action in WANTED else None
    lost = loss(job, asked.context.clock()) if action == "pause" else ""
    effect = f"{lost}: it would begin again when it is resumed." if lost else _effect(shown, action)
    command = f"edt {'rm' if action == 'delete' else action} {job.id}"
    return Question(
        action.capitalize(),
        shown.name or job.id,
        [effect, *sentences(foreseen)],
        f"/jobs/{job.id}",
        hidden=[("force", "1")] if lost else (),
        command=f"{command} --force" if lost else command,
        undo=f"/jobs/{job.id}/{UNDONE_BY[action]}" if action in UNDONE_BY and not lost else "",
    )


def _effect(job: Job, action: str) -> str:
    """What an action does to a job and to others."""
    freed = (
        f" Its {job.size} {'device is' if job.size == 1 else 'devices are'} free then." if job.size else ""
    )
    match action:
        case "stop":
            return f"The job ends for good. What it has saved stays.{freed}"
        case "pause":
            return f"The job saves its state and waits until it is resumed.{freed}"
        case "delete":
            return "The job and all that it has made are deleted: model, logs and checkpoints, too."
    least = f"{job.min} {'device' if job.min == 1 else 'devices'}"
    return f"The job waits for {least} at least, and goes on from its saved state."


def _want(action: str, asked: Asked) -> str:
    if action == "pause":
        service.pause(asked.context, asked.user, asked.id, force=asked.given.force)
    else:
        service.set_wanted(asked.context, asked.user, asked.id, WANTED[action])
    return f"/jobs/{asked.id}"


def _delete(asked: Asked) -> str:
    asked.carry_out([service.delete(asked.context, asked.user, asked.id)])
    return "/jobs"


# Changing.


def settings(job: Job) -> dict[str, str]:
    """What can be changed of a job, as its form has it."""
    special = {"weight": f"{job.weight:g}", "tags": ", ".join(job.tags)}
    return {name: special.get(name, str(getattr(job, name))) for name in LABELS}


def _changeable(job: Job) -> dict[str, str]:
    return {name: text for name, text in settings(job).items() if name in ANNOTATIONS or not job.has_ended}


def _ask_change(asked: Asked) -> Question:
    job, shown = _able(asked, "set")
    present, seen = _changeable(shown), asked.given.seen
    is_sent = asked.is_preview or asked.error is not None
    given = asked.given.values if is_sent else present
    foreseen = None
    if asked.is_preview:
        _check_seen(shown, seen)
        changes = _changes(asked.given.values, seen)
        foreseen = effects(asked.context, [service.changed(asked.context, asked.user, job.id, changes)[1]])
    if asked.error is not None:  # what was left as it was seen follows the changes of others
        given = {
            name: present.get(name, text) if text.strip() == seen.get(name) else text
            for name, text in given.items()
        }
    return Question(
        "Change",
        shown.name or job.id,
        [ANNOTATED] if job.has_ended else [CHANGE, *sentences(foreseen)],
        f"/jobs/{job.id}",
        [_field(name, given) for name in present],
        [("seen", json.dumps(present))],
        can_foresee=not job.has_ended,
        command=_command(job.id, given if is_sent else {}, present),
    )


def _field(name: str, given: Mapping[str, str]) -> asking.Field:
    return asking.Field(name, CLONED[name], given[name], name not in {*ANNOTATIONS, "command"})


def _change(asked: Asked) -> str:
    given, seen = asked.given.values, asked.given.seen
    _check_seen(answers.job(_job(asked)), seen)
    asked.note(" ".join(f"{field}={value}" for field, value in given.items()))
    service.change(asked.context, asked.user, asked.id, _changes(given, seen))
    return f"/jobs/{asked.id}"


def _check_seen(job: Job, seen: Mapping[str, str]) -> None:
    """Raise `ConflictError` if a job's `settings` differ from what was `seen` of them."""
    others = "; ".join(
        f"{LABELS[name].partition(' (')[0]} is {value} now, and was {seen[name]}"
        for name, value in settings(job).items()
        if seen.get(name, value) != value
    )
    if others:
        raise ConflictError(
            f"somebody else was first: {others}", "check your values, and send the form again"
        )


def _changes(given: Mapping[str, str], seen: Mapping[str, str]) -> JobChange:
    """What differs from what was `seen`; only `ANNOTATIONS` may be taken away."""
    values = {name: text.strip() for name, text in given.items() if text.strip() != seen.get(name, "")}
    if empty := [LABELS[name] for name, value in values.items() if name not in ANNOTATIONS and not value]:
        raise InvalidError(f"nothing is written for {', '.join(empty)}", "write a number")
    return parsed(JobChange, _as_sent(values))


def _as_sent(values: Mapping[str, str]) -> dict[str, Any]:
    """The values of a form as REST takes them: tags are a list."""
    return {name: written.words(value) if name == "tags" else value for name, value in values.items()}


def _command(job: str, given: Mapping[str, str], present: Mapping[str, str]) -> str:
    """That changes what differs in the form."""
    changed = {
        name: value
        for name, value in given.items()
        if name in present and value.strip() not in ("", present[name])
    }
    changed = changed or dict([next(iter(present.items()))])
    options = [word for name, value in changed.items() for word in (f"--{name}", value)]
    return shlex.join(["edt", "set", job, *options])


# Another job like it.


def _ask_clone(asked: Asked) -> Question:
    job, checkpoint = answers.job(_job(asked)), asked.given.checkpoint
    given = settings(job) | {"command": shlex.join(job.command or ())}
    if asked.is_preview or asked.error is not None:
        given = asked.given.values | {"command": asked.given.command}
    foreseen: Sequence[str] = ()
    if asked.is_preview:
        submission = _submission(asked)
        asked.context.submitter.check(submission)
        context = asked.context
        foreseen = _foreseen(forecast(context.store, context.settings, submission, context.clock()))
    return Question(
        "Clone",
        job.name or job.id,
        [
            "A new job with the same submitted files, and with the same settings but for these.",
            *([f"It goes on from a copy of {checkpoint}."] if checkpoint else []),
            *foreseen,
        ],
        f"/jobs/{job.id}",
        [_field(name, given) for name in CLONED],
        [("checkpoint", checkpoint)] if checkpoint else (),
        can_foresee=True,
    )


def _clone(asked: Asked) -> str:
    new, _ = asked.context.submitter.submit(_submission(asked), asked.context.clock())
    asked.context.changed()
    return f"/jobs/{new.id}"


def _submission(asked: Asked) -> Submission:
    given = asked.given.values
    values = _as_sent(
        {name: text.strip() for name, text in given.items() if name in ANNOTATIONS or text.strip()}
    )
    command = words(asked.given.command)
    try:
        spec = like(_job(asked), **values, command=command, checkpoint=asked.given.checkpoint or None)
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None
    return Submission(asked.user, spec)


def _foreseen(forecast: Mapping[str, Any]) -> list[str]:
    job = forecast["job"]
    own = f"It starts at once with {job.target}." if job.target else f"It {job.reason}."
    return [own, *sentences([one for one in forecast["changes"] if one["job"] is not None])]


router = routes(
    [
        *(
            Action(
                f"/jobs/{{id}}/{action}",
                partial(_ask, action),
                partial(_want, action),
                ForceField if action == "pause" else NoFields,
            )
            for action in WANTED
        ),
        Action("/jobs/{id}/set", _ask_change, _change, SettingsFields),
        Action("/jobs/{id}/clone", _ask_clone, _clone, CloneFields, starts_jobs=True),
        Action("/jobs/{id}/delete", partial(_ask, "delete"), _delete),
    ]
)
