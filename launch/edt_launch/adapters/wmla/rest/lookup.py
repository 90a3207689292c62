"""What every request below WMLA's bases needs: the job that it names, and in whose manner to answer."""

from collections.abc import Sequence
from typing import Annotated, Any, cast

from fastapi import Depends, Request

from edt_launch.adapters.wmla.answers import views
from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.rest.authenticator import STYLE, Style
from edt_launch.service.app.context import Context, may
from edt_launch.service.app.first_start import this_user
from edt_launch.service.errors import ForbiddenError, InvalidError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import Wanted
from edt_launch.service.jobs.store import NoSuchJobError


async def _style(request: Request) -> Style:
    return cast("Style", request.scope[STYLE])


Manner = Annotated[Style, Depends(_style)]


def find(context: ContextDep, user: CurrentUser, name: str) -> Execution:
    """The job that is called so: by the id of its exec, driver or application, or by its own."""
    names = context.store.execs.find(name[:256]) if "\0" not in name else None
    try:
        job = context.store.jobs.get(name[:16] if names is None or names.job is None else names.job)
        files = context.home.job(job.id)
    except (NoSuchJobError, ValueError):
        raise _not_found(name) from None
    if not may(user, job):
        raise ForbiddenError(f"{name[:80]} is an execution of {job.owner}")
    return Execution(job, names or views.unnamed(job), files)


def _not_found(name: str) -> InvalidError:
    return InvalidError(f"Execution ID {name[:80]!r} not found")


def stop(context: Context, execution: Execution) -> None:
    """End an execution for good; one that has ended stays as it is."""
    try:
        context.store.jobs.set_wanted(execution.job.id, Wanted.STOP)
    except NoSuchJobError:
        raise _not_found(execution.names.id) from None
    context.changed()


Named = Annotated[Execution, Depends(find)]
"""The job that `name` in the path calls so."""


def with_names(context: Context, jobs: Sequence[JobRecord]) -> list[Execution]:
    """Jobs and their names."""
    names = context.store.execs.of([job.id for job in jobs])
    return [Execution(job, names.get(job.id) or views.unnamed(job), context.home.job(job.id)) for job in jobs]


def shown(request: Request, execution: Execution, style: Style) -> dict[str, Any]:
    """An exec in the manner of a request."""
    view = views.modern if style is Style.MODERN else views.classic
    context: Context = request.app.state.context
    return view(execution, context.url, this_user())
