"""Projects and their members, and the experiments in them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import ConflictError, InvalidError, ServiceError
from edt_launch.service.experiments import experiments as made
from edt_launch.service.experiments import runs, service
from edt_launch.service.experiments.comparison import differing as differences
from edt_launch.service.experiments.pages.views import experiments as views
from edt_launch.service.experiments.pages.views import run_table
from edt_launch.service.experiments.pages.views.compared import MAX_CURVES, compared
from edt_launch.service.experiments.pages.views.run_table import (
    MAX_PARAMETERS,
    RunTableQuery,
)
from edt_launch.service.experiments.pages.views.searches import TABS as SEARCH_TABS
from edt_launch.service.experiments.pages.views.searches import Drawn, actions, listed, search_view
from edt_launch.service.experiments.projects import project_for
from edt_launch.service.experiments.records import SEARCH_LIVE, ExperimentRecord, Role
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.spec import RUN_ID
from edt_launch.service.experiments.stores.run_query import RunQuery
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.pages.views.job_tabs.monitor import X_AXES
from edt_launch.service.names import OWNER
from edt_launch.service.web import templating
from edt_launch.service.web.asking import overtaken
from edt_launch.service.web.crumbs import EXPERIMENTS

router = APIRouter(prefix="/experiments")

Json = dict[str, Any]
Place = Annotated[int, Query(ge=0, le=2**53)]
PAGE = 100
"""Projects, experiments or training definitions of a page."""


@router.get("")
async def show_all(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    owner: Annotated[str, Query(pattern=f"^({OWNER})?$")] = "",
    after: Place = 0,
    projects_after: Place = 0,
) -> Response:
    """A page of the projects, and one of the experiments in them and of searches, the newest first."""

    def view() -> Json:
        found = service.listed(context, user, owner or None, PageQuery(PAGE, after, newest=True))
        known = service.projects_page(context, user, PageQuery(PAGE, projects_after, newest=True))
        places: dict[str, int | str] = {"owner": owner, "after": after, "projects_after": projects_after}
        nexts = {"after": found["next"], "projects_after": known["next"]}
        projects = {one["project"] for one in found["experiments"] if one["project"]}
        names = context.store.projects.names(projects)
        rows = [listed(one, names, context.clock()) for one in found["experiments"]]
        return {
            "projects": known["projects"],
            "experiments": rows,
            "owner": owner,
            "pages": views.Pages("/experiments", places, nexts),
            "goes_on": any(one["state"] in SEARCH_LIVE for one in rows),
        }

    who = None if user.is_admin else user.name  # others see their own projects and best trials alone
    return await templating.shared_page(request, who, "experiments/all.html", view)


@router.get("/projects/{project_id}")
def show_project(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    project_id: str,
    after: Place = 0,
    definitions_after: Place = 0,
) -> Response:
    """A project: its members, experiments and training definitions."""
    project = project_of(context, user, project_id)
    id_ = project["id"]
    found = service.experiments_page(context, user, id_, None, PageQuery(PAGE, after, newest=True))
    definitions_asked = PageQuery(PAGE, definitions_after, newest=True)
    known = service.definitions_page(context, user, id_, None, definitions_asked)
    places = {"after": after, "definitions_after": definitions_after}
    nexts = {"after": found["next"], "definitions_after": known["next"]}
    view = {
        "above": [EXPERIMENTS],
        "project": project,
        "may_edit": views.may_edit(project),
        "may_manage": project["role"] is Role.MANAGER,
        "is_member": any(one.user == user.name for one in project["members"]),
        "experiments": found["experiments"],
        "definitions": [views.with_line(vars(one)) for one in known["definitions"]],
        "pages": views.Pages(f"/experiments/projects/{id_}", places, nexts),
    }
    return templating.page(request, "experiments/project.html", view=view)


@router.get("/{experiment_id}")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    drawn: Annotated[Drawn, Depends()],
    tab: Annotated[str, Query(pattern=f"^({'|'.join([*views.TABS, *SEARCH_TABS])}|)$")] = "",
    after: Place = 0,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    find: Annotated[str, Query(max_length=1024)] = "",
    column: Annotated[list[Annotated[str, Query(max_length=300)]] | None, Query(max_length=200)] = None,
    run: Annotated[list[Annotated[str, Query(pattern=f"^{RUN_ID}$")]] | None, Query(max_length=200)] = None,
    metric: Annotated[list[Annotated[str, Query(max_length=256)]] | None, Query(max_length=200)] = None,
    smooth: Annotated[str, Query(pattern=r"^0(\.[0-9]{1,2})?$")] = "0",
) -> Response:
    """An experiment: its runs, the same beside each other, or what it is; or a search."""
    record = await run_in_threadpool(context.store.experiments.get, experiment_id)
    is_search = record is not None and bool(record.algorithm)
    tab = tab or ("progress" if is_search else "runs")
    if tab not in (SEARCH_TABS if is_search else views.TABS):
        raise InvalidError(f"tab: {experiment_id!r} has no {tab!r}", "leave it out")
    if is_search and tab not in views.TABS:
        search = await run_in_threadpool(searches.shown, context, user, experiment_id)
        address = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        view = search_view(search, tab, drawn, context.clock(), after, address)
        return await run_in_threadpool(templating.page, request, "experiments/search.html", view=view)
    sort = drawn.sort or RunTableQuery.sort
    table = RunTableQuery(find.strip(), sort, list(dict.fromkeys(column or ())), after)
    x = drawn.x or "step"
    if x not in X_AXES:
        raise InvalidError(f"x: {x!r} is no axis of curves", f"use one of {', '.join(X_AXES)}")
    chosen, metrics = list(dict.fromkeys(run or ())), [name for name in dict.fromkeys(metric or ()) if name]
    is_log = "1" in (drawn.log or ())
    asked = views.ExperimentQuery(tab, table, before, chosen, metrics, x, smooth, is_log)
    view = await context.reads.run(user.name, lambda: _experiment(context, user, experiment_id, asked))
    status = 422 if tab == "compare" and view["compared"]["error"] else 200
    return await run_in_threadpool(
        templating.page, request, f"experiments/{tab}.html", status=status, view=view
    )


def after_refusal(
    error: ServiceError,
    seen: int | None,
    version: int,
    labels: Mapping[str, str],
    given: Mapping[str, str],
    present: Mapping[str, str],
) -> tuple[str, int | None]:
    """What is said above a form that was refused, and the version that it is about from then on.

    It stays the version that was `seen`, unless somebody has been told what is different in a later one:
    the `present` values of the fields that have `labels`.
    """
    if not isinstance(error, ConflictError) or seen in (None, version):
        return error.message, seen
    return overtaken(error.detail, labels, given, present), version


def project_of(context: Context, user: UserRecord, project_id: str) -> Json:
    """A project as REST answers it."""
    return service.project(context, user, project_for(context, user, project_id))


def experiment_of(context: Context, user: UserRecord, experiment_id: str) -> Json:
    """An experiment as REST answers it."""
    return service.experiment(context, made.experiment_for(context, user, experiment_id))


def _experiment(context: Context, user: UserRecord, experiment_id: str, asked: views.ExperimentQuery) -> Json:
    record = made.experiment_for(context, user, experiment_id)
    experiment = service.experiment(context, record)
    project = None if record.project is None else project_of(context, user, record.project)
    (search,) = searches.listed(context, user, [record]) if record.algorithm else (None,)
    summary = runs.summary(context, record)
    view = views.experiment_view(experiment, project, summary, asked, actions(search) if search else {})
    viewer = None if user.is_admin else user.name
    if asked.tab == "runs":
        return view | _table(context, record, summary, asked.table, viewer)
    if asked.tab == "compare":
        return view | _comparison(context, user, record, summary, asked, viewer)
    return view | {"experiment": views.with_line(experiment)}


def _table(
    context: Context,
    record: ExperimentRecord,
    summary: runs.Summary,
    asked: RunTableQuery,
    viewer: str | None,
) -> Json:
    """The runs that are looked for, by page; one after the last one is the last one."""
    path = f"/experiments/{record.id}"
    started = runs.started_with(context, record.id)
    differing = [one.name for one in differences(list(started.values()), MAX_PARAMETERS)]
    found = context.store.experiments.found(RunQuery(record.id, asked.find, asked.sort))
    ids = run_table.ordered(found, asked.sort, summary, started)
    asked = replace(asked, after=min(asked.after, max(0, len(ids) - 1) // run_table.PAGE * run_table.PAGE))
    wanted = ids[asked.after : asked.after + run_table.PAGE]
    known = {one.id: one for one in context.store.experiments.runs(record.id, None, len(wanted), wanted)}
    page = runs.shown(context, [known[id_] for id_ in wanted if id_ in known])
    table = run_table.run_table(path, asked, len(ids), summary.best, differing)
    rows = [run_table.row(one, viewer, summary, started.get(one.run.id)) for one in page]
    return {"table": table, "rows": rows, "address": table.address}


def _comparison(
    context: Context,
    user: UserRecord,
    record: ExperimentRecord,
    summary: runs.Summary,
    asked: views.ExperimentQuery,
    viewer: str | None,
) -> Json:
    """The runs that were chosen beside each other, or else those of a page, and the best ones of others."""
    store = context.store.experiments
    page, following = service.page_of(context, record.id, asked.before)
    if 0 < len(asked.chosen) <= MAX_CURVES:
        comparison = service.compared(context, user, record.id, asked.chosen)
    else:
        comparison = service.beside(context, record, page)
    chosen = store.runs(record.id, None, len(asked.chosen), asked.chosen)
    shown = {one.id: one for one in (*chosen, *page)}
    best = {name: one for name, one in summary.best.items() if one is not None and one.run not in shown}
    others = store.runs(record.id, None, len(best), {one.run for one in best.values()})
    elsewhere = {one.run.id: one for one in runs.shown(context, others)}
    tab = f"/experiments/{record.id}?tab=compare"
    return {
        "rows": [run_table.row(one, viewer, summary) for one in runs.shown(context, list(shown.values()))],
        "compared": compared(comparison, summary.names, asked.metrics, asked.x, asked.chosen),
        "elsewhere": [
            (name, run_table.precise(one.value), elsewhere[one.run])
            for name, one in best.items()
            if one.run in elsewhere
        ],
        "before": asked.before,
        "newest": tab if asked.before else "",
        "older": f"{tab}&before={following}" if following else "",
    }
