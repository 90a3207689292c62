"""What starting a job would change, while it is being described in a form."""

from typing import Any

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ForbiddenError, InvalidError
from edt_launch.service.jobs.forecast.forecast import changes_by
from edt_launch.service.jobs.forecast.foreseen import of_starting
from edt_launch.service.jobs.specification import JobSpec
from edt_launch.service.jobs.submission import Submission
from edt_launch.service.web.form_fields import parsed


def lines(context: Context, user: UserRecord, framework: str = "", **values: Any) -> list[str]:
    """Sentences about a job with these fields of `JobSpec`, or what is wrong with them.

    `framework`: that of a script; empty for any command.
    """
    command, given = ["main.py" if framework else "true"], {"framework": framework, **values}
    try:
        fields = {"name": "It", "command": command} | {name: one for name, one in given.items() if one}
        spec = parsed(JobSpec, fields)
        context.submitter.check_priority(user, spec.priority)
    except InvalidError as error:
        return [error.detail]
    except ForbiddenError as error:
        return [error.message]
    return of_starting(changes_by(context.store, context.settings, [Submission(user, spec)], context.clock()))
