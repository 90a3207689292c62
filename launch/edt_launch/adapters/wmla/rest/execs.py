"""`/execs`: submit, list, show, stop, delete."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query, Request, Response

from edt_launch.adapters.wmla.answers import views
from edt_launch.adapters.wmla.answers.views import Json
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.rest import lookup
from edt_launch.adapters.wmla.rest.authenticator import NotOfferedError, Style
from edt_launch.adapters.wmla.rest.lookup import Manner, Named
from edt_launch.adapters.wmla.rest.selecting import States, states_of
from edt_launch.adapters.wmla.submission import catalogue
from edt_launch.adapters.wmla.submission.form import FormDep
from edt_launch.adapters.wmla.submission.request import ExecRequest, beside, model_of, with_names
from edt_launch.adapters.wmla.submission.submitting import group_name, pool_size, submit
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.experiments import runs
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, carry_out
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.states import ENDED
from edt_launch.service.jobs.submission import remove_files

router = APIRouter()

MAX_EXECS = 1000  # execs of one answer


@router.post("/execs")
async def submit_exec(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    style: Manner,
    form: FormDep,
    args: str = "",
    group: Annotated[str | None, Query(alias="sigName")] = None,
) -> Json:
    """Queue a job."""
    asked = ExecRequest(args, None if group is None else group_name(group), form.data)

    def take_in() -> Json:
        parts = with_names(form.parts, asked.main)
        model = model_of(parts, asked.main)
        named = replace(asked, file_name="" if model is None else model.name)
        names = submit(context, user, named, None if model is None else model.file, beside(parts, model))
        assert names.job is not None
        return lookup.shown(
            request, lookup.find(context, user, names.id), style if group is None else Style.CLASSIC
        )

    return await context.uploads.run(user.name, take_in)


@router.get("/frameworks/all")
def framework_names(user: CurrentUser) -> list[str]:
    """The names of what programs can be submitted for."""
    return list(map(str, Framework))


@router.get("/frameworks")
@router.get("/execs/frameworks")
def frameworks(context: ContextDep, style: Manner) -> list[Json]:
    """What programs can be submitted for."""
    if style is Style.CLASSIC:
        return [catalogue.classic(framework) for framework in Framework]
    pool = pool_size(context.store)
    return [catalogue.modern(framework, pool) for framework in Framework]


@router.get("/execs")
def list_execs(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    style: Manner,
    limit: Annotated[int, Query(ge=1, le=MAX_EXECS)] = MAX_EXECS,
    state: States = (),
    sort_by: Annotated[str, Query(max_length=64)] = "id:desc",
) -> list[Json]:
    """A user's execs, or everybody's for administrators; the newest first."""
    field, _, order = sort_by.partition(":")
    if order not in ("", "asc", "desc"):
        raise InvalidError(f"sort_by: {sort_by!r}: expected a field and asc or desc, such as id:desc")
    is_down = order == "desc"
    by_age = field in ("id", "createTime", "submissionId", "appId")
    # Not each job in the states that are looked for is in the state that is asked for.
    names = states_of(state)
    is_ambiguous = names is not None and not names.isdisjoint((views.SUBMITTED, views.PENDING))
    wanted = JobQuery(
        states=None if names is None else views.behind(names),
        owners=None if user.is_admin else [user.name],
        limit=limit if by_age and not is_ambiguous else None,
        newest=by_age and is_down,
    )
    page = context.store.jobs.page(wanted)
    execs = [lookup.shown(request, one, style) for one in lookup.with_names(context, page.jobs)]
    if names is not None:
        execs = [one for one in execs if one["state"] in names]
    if not by_age:
        if execs and field not in execs[0]:
            raise InvalidError(f"sort_by: {field!r} is no field of an exec")
        execs.sort(key=lambda one: one[field], reverse=is_down)
    return execs[:limit]


@router.get("/execs/{name}")
def show(request: Request, execution: Named, style: Manner) -> Json:
    """An exec."""
    return lookup.shown(request, execution, style)


@router.post("/execs/{name}/stop", status_code=204, response_class=Response)
def stop(context: ContextDep, execution: Named) -> None:
    """End an exec for good; one that has ended stays as it is."""
    lookup.stop(context, execution)


@router.post("/execs/{name}/deploy")
def deploy(execution: Named) -> None:
    """Models are not served here."""
    raise NotOfferedError(
        "models cannot be deployed here", f"fetch it instead: GET /execs/{execution.names.id}/result"
    )


@router.delete("/execs/{name}", status_code=204, response_class=Response)
def delete(context: ContextDep, execution: Named, afterwards: BackgroundTasks) -> None:
    """Forget an exec that has ended, and delete its files."""
    if not execution.job.has_ended:
        state = views.state_of(execution.job)
        raise ConflictError(
            f"{execution.names.id} is {state}", "stop it first, and delete it when it has ended"
        )
    if not _delete(context, execution.job.id, afterwards):
        text = f"{execution.names.id} is a trial whose search has yet to read its result"
        raise ConflictError(text, "try again soon")


@router.delete("/execs", status_code=204, response_class=Response)
def delete_all(context: ContextDep, user: CurrentUser, afterwards: BackgroundTasks) -> None:
    """Forget a user's execs that have ended; the others stay, and trials whose result has yet to be read."""
    # Even an administrator deletes their own alone in one go.
    for job in context.store.jobs.page(JobQuery(states=ENDED, owners=[user.name], limit=None)).jobs:
        _delete(context, job.id, afterwards)


def _delete(context: Context, job: str, afterwards: BackgroundTasks) -> bool:
    """Whether nothing keeps it."""
    runs.keep(context, job)
    if not context.store.jobs.delete(job):
        return False
    carry_out([remove_files(context.home, job)], afterwards)
    context.changed()
    return True
