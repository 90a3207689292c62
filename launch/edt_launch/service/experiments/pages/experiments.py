"""Projects and their members, and the experiments in them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError, ServiceError
from edt_launch.service.experiments import experiments as made
from edt_launch.service.experiments import projects, runs, service
from edt_launch.service.experiments.definitions import create as create_definition
from edt_launch.service.experiments.pages.views import experiments as views
from edt_launch.service.experiments.pages.views.compared import AXES, Compared, compared, too_many
from edt_launch.service.experiments.projects import project_for
from edt_launch.service.experiments.records import ExperimentRecord, Role, RunRecord
from edt_launch.service.experiments.spec import RUN_ID, DefinitionSpec, ProjectSpec, RunSpec
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.asking import overtaken
from edt_launch.service.web.crumbs import EXPERIMENTS
from edt_launch.service.web.form_fields import WRONG, FormKey, Value, new_key, parsed

router = APIRouter(prefix="/experiments")

Json = dict[str, Any]
Place = Annotated[int, Query(ge=0, le=2**53)]
PAGE = 100
"""Projects, experiments or training definitions of a page."""


@router.get("")
def show_all(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    after: Place = 0,
    projects_after: Place = 0,
) -> Response:
    """A page of the projects, and one of the experiments in them, the newest first."""
    found = service.experiments_page(context, user, None, None, PAGE, after, newest=True)
    known = service.projects_page(context, user, PAGE, projects_after, newest=True)
    places = {"after": after, "projects_after": projects_after}
    nexts = {"after": found["next"], "projects_after": known["next"]}
    view = {
        "projects": known["projects"],
        "experiments": found["experiments"],
        "names": context.store.projects.names({one["project"] for one in found["experiments"]}),
        "pages": views.Pages("/experiments", places, nexts),
    }
    return templating.page(request, "experiments/all.html", view=view)


@router.get("/new-project")
def ask_project(request: Request, user: CurrentUser) -> Response:
    """The form of a new project."""
    return templating.page(request, "act.html", view=views.project_question({}))


@router.post("/new-project")
def create_project(
    request: Request, context: ContextDep, user: CurrentUser, name: Value = "", description: Value = ""
) -> Response:
    """Make it, or show the form again with what was wrong."""
    given = {"name": name.strip(), "description": description.strip()}
    try:
        project = projects.create(context, user, parsed(ProjectSpec, given))
    except WRONG as error:
        view = views.project_question(given, error.message)
        return templating.page(request, "act.html", status=error.status, view=view)
    request.scope[SUBJECT] = project.name
    return RedirectResponse(f"/experiments/projects/{project.id}", 303)


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
    found = service.experiments_page(context, user, id_, None, PAGE, after, newest=True)
    known = service.definitions_page(context, user, id_, None, PAGE, definitions_after, newest=True)
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


@router.get("/projects/{project_id}/members")
def ask_member(request: Request, context: ContextDep, user: CurrentUser, project_id: str) -> Response:
    """The form by which members are added, for managers."""
    project_for(context, user, project_id, Role.MANAGER)
    project = project_of(context, user, project_id)
    return templating.page(request, "act.html", view=views.member_question(project, _names(context)))


@router.get("/projects/{project_id}/leave")
def ask_to_leave(request: Request, context: ContextDep, user: CurrentUser, project_id: str) -> Response:
    """Whether to leave a project."""
    view = views.leave_question(project_of(context, user, project_id), user.name)
    return templating.page(request, "act.html", view=view)


@router.post("/projects/{project_id}/members")
def set_member(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    project_id: str,
    member: Annotated[str, Form(alias="user", max_length=64)] = "",
    role: Annotated[str, Form(pattern=f"^({'|'.join(Role)})?$")] = "",
) -> Response:
    """Add a member, give them another role, or remove them."""
    if role or member != user.name:
        project_for(context, user, project_id, Role.MANAGER)
    try:
        if role:
            projects.set_member(context, user, project_id, member, Role(role))
        else:
            projects.remove_member(context, user, project_id, member)
    except WRONG as error:
        view = views.member_question(project_of(context, user, project_id), _names(context), error.message)
        return templating.page(request, "act.html", status=error.status, view=view)
    request.scope[SUBJECT] = f"{member} {role}".strip()
    has_left = not role and member == user.name and not user.is_admin
    return RedirectResponse("/experiments" if has_left else f"/experiments/projects/{project_id}", 303)


@router.get("/{experiment_id}")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    tab: Annotated[str, Query(pattern=f"^({'|'.join(views.TABS)})$")] = "runs",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    run: Annotated[list[Annotated[str, Query(pattern=f"^{RUN_ID}$")]] | None, Query(max_length=200)] = None,
    metric: Annotated[str, Query(max_length=256)] = "",
    x: Annotated[str, Query(pattern=f"^({'|'.join(AXES)})$")] = "step",
    smooth: Annotated[str, Query(pattern=r"^0(\.[0-9]{1,2})?$")] = "0",
    log: Annotated[bool, Query()] = False,
) -> Response:
    """An experiment: its runs, the same beside each other, or what it is."""
    asked = views.ExperimentQuery(tab, before, list(dict.fromkeys(run or ())), metric, x, smooth, log)
    view = await context.reads.run(user.name, lambda: _experiment(context, user, experiment_id, asked))
    status = 422 if view.compared and view.compared.error else 200
    return await run_in_threadpool(
        templating.page, request, f"experiments/{tab}.html", status=status, view=view
    )


@router.get("/{experiment_id}/run")
def ask_run(request: Request, context: ContextDep, user: CurrentUser, experiment_id: str) -> Response:
    """What starting an experiment would change."""
    planned = made.planned_runs(context, user, experiment_id, RunSpec())
    lines = service.preview(context, user, planned)["lines"]
    back = f"/experiments/{experiment_id}"
    view = views.start_question("Run", planned[0].experiment.name, lines, f"{back}/run", back, new_key())
    return templating.page(request, "act.html", view=view)


@router.post("/{experiment_id}/run")
async def run(
    request: Request, context: ContextDep, user: CurrentUser, experiment_id: str, key: FormKey = ""
) -> Response:
    """Start it, or show the question again with what was wrong."""
    experiment = await run_in_threadpool(made.experiment_for, context, user, experiment_id)
    back = f"/experiments/{experiment.id}"

    def start() -> None:
        made.start(context, user, made.planned_runs(context, user, experiment.id, RunSpec()), key or None)

    try:
        await context.uploads.run(user.name, start)
    except WRONG as error:
        view = views.start_question("Run", experiment.name, (), f"{back}/run", back, new_key(), error.message)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(back, 303)


@router.get("/runs/{run_id}/again")
def ask_again(request: Request, context: ContextDep, user: CurrentUser, run_id: str) -> Response:
    """What starting a run once more would change."""
    planned = made.planned_again(context, user, run_id)
    lines = service.preview(context, user, planned)["lines"]
    address, back = f"/experiments/runs/{run_id}/again", f"/experiments/{planned[0].experiment.id}"
    view = views.start_question("Run again", planned[0].name, lines, address, back, new_key())
    return templating.page(request, "act.html", view=view)


@router.post("/runs/{run_id}/again")
async def run_again(
    request: Request, context: ContextDep, user: CurrentUser, run_id: str, key: FormKey = ""
) -> Response:
    """Start it, or show the question again with what was wrong."""
    run = await run_in_threadpool(made.run_for, context, user, run_id)
    address, back = f"/experiments/runs/{run.id}/again", f"/experiments/{run.experiment}"

    def start() -> None:
        made.start(context, user, made.planned_again(context, user, run.id), key or None)

    try:
        await context.uploads.run(user.name, start)
    except WRONG as error:
        view = views.start_question("Run again", run.name, (), address, back, new_key(), error.message)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(back, 303)


@router.get("/runs/{run_id}/save")
def ask_save(request: Request, context: ContextDep, user: CurrentUser, run_id: str) -> Response:
    """The form by which a run becomes a training definition."""
    run = made.run_for(context, user, run_id, Role.EDITOR)
    view = views.save_question(vars(run), "", f"/experiments/{run.experiment}")
    return templating.page(request, "act.html", view=view)


@router.post("/runs/{run_id}/save")
async def save(
    request: Request, context: ContextDep, user: CurrentUser, run_id: str, name: Value = ""
) -> Response:
    """Make it, or show the form again with what was wrong."""
    run = await run_in_threadpool(made.run_for, context, user, run_id, Role.EDITOR)
    back = f"/experiments/{run.experiment}"

    def make() -> str:
        project = made.experiment_for(context, user, run.experiment).project
        given = {"project": project, "name": name.strip(), "command": run.spec["command"], "code_of": run.job}
        framework = run.spec.get("framework")
        spec = parsed(DefinitionSpec, given | ({"framework": framework} if framework else {}))
        create_definition(context, user, spec, None, "")
        return project

    try:
        project = await context.uploads.run(user.name, make)
    except WRONG as error:
        view = views.save_question(vars(run), name, back, error.message)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(f"/experiments/projects/{project}", 303)


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


def _experiment(
    context: Context, user: UserRecord, experiment_id: str, asked: views.ExperimentQuery
) -> views.ExperimentView:
    record = made.experiment_for(context, user, experiment_id)
    experiment = experiment_of(context, user, record.id)
    project = project_of(context, user, record.project)
    page, following = service.page_of(context, record.id, asked.before)
    summary = runs.summary(context, record)
    beside, chosen = None, []
    if asked.tab == "compare":
        chosen = context.store.experiments.runs(record.id, None, len(asked.chosen), asked.chosen)
        beside = _compared(context, user, record, page, summary.names, asked)
    shown = {run.id: run for run in (*chosen, *page)}
    seen = service.beside(context, record, list(shown.values()))["runs"]
    viewer = None if user.is_admin else user.name
    return views.experiment_view(experiment, project, seen, summary, asked, following, beside, viewer=viewer)


def _compared(
    context: Context,
    user: UserRecord,
    experiment: ExperimentRecord,
    page: Sequence[RunRecord],
    names: Sequence[str],
    asked: views.ExperimentQuery,
) -> Compared:
    """The runs that were chosen beside each other, or else those of a page."""
    error = too_many(asked.chosen)
    if asked.chosen and not error:
        comparison = service.compared(context, user, experiment.id, asked.chosen)
    else:
        comparison = service.beside(context, experiment, page)
    return compared(comparison, names, asked.metric, asked.x, asked.chosen, error)


def _names(context: Context) -> list[str]:
    return [one.name for one in context.store.accounts.users()]
