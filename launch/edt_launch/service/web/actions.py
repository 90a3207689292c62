"""Actions: what is done after a page has asked.

A feature lists its actions, and `routes` makes the pair of routes of each: GET asks, POST does it. If the
question `can_foresee`, its form has a second button, which shows it again, with what would change. An error
is shown above the question, which keeps what was written. The form of an action may also be a part of another
page: then that page is shown again.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, get_origin

from fastapi import APIRouter, BackgroundTasks, Depends, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams

from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import NotFoundError, ServiceError
from edt_launch.service.http.dependencies import (
    SUBJECT,
    ContextDep,
    CurrentToken,
    CurrentUser,
    admin,
    carry_out,
)
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, parsed


@dataclass(frozen=True)
class Asked:
    """A request about an action.

    Attributes:
        session: the token that proves who asks.
        id: of what it is about, from its path; empty if that names nothing.
        given: what was sent, as the action's `fields`.
        is_preview: whether only what it would change is asked for.
        error: why it could not be done like that; None if it was not tried.
    """

    request: Request
    context: Context
    user: UserRecord
    session: TokenRecord
    afterwards: BackgroundTasks
    id: str
    given: Any
    is_preview: bool = False
    error: ServiceError | None = None

    def note(self, subject: str) -> None:
        """Say in the audit log what it was about, besides its path."""
        self.request.scope[SUBJECT] = subject

    def carry_out(self, deletions: Iterable[Callable[[], None]]) -> None:
        """Have files deleted after the answer."""
        carry_out(deletions, self.afterwards)


class NoFields(BaseModel):
    """The form has buttons alone."""


@dataclass(frozen=True)
class Action:
    """What can be done to things of one kind.

    Attributes:
        path: of both routes; `{id}` is the thing.
        ask: makes the question, or the view of another `template`, a dataclass with an `error`; raises
            `ServiceError` if it makes no sense.
        do: does it; the address to go on at, or the answer.
        fields: those of the form, which may be given in the address as well; a file is an `UploadFile`.
        is_for_admins: whether others are refused.
        starts_jobs: whether it copies files: a user has a few of these at a time.
        stores_data: whether it copies data: likewise, without a job that waits for it.
        is_on_page: whether its form is a part of a page with an address of its own; `ask` makes the view of
            that page.
    """

    path: str
    ask: Callable[[Asked], Any]
    do: Callable[[Asked], str | Response]
    fields: type[BaseModel] = NoFields
    is_for_admins: bool = False
    starts_jobs: bool = False
    stores_data: bool = False
    template: str = "act.html"
    is_on_page: bool = False


def routes(actions: Iterable[Action]) -> APIRouter:
    """The routes of actions."""
    router = APIRouter()
    for action in actions:
        who = [Depends(admin)] if action.is_for_admins else []
        if not action.is_on_page:
            router.add_api_route(action.path, _route(action, _question), methods=["GET"], dependencies=who)
        router.add_api_route(action.path, _route(action, _done), methods=["POST"], dependencies=who)
    return router


def _route(
    action: Action, answer: Callable[[Action, Asked], Awaitable[Response]]
) -> Callable[..., Awaitable[Response]]:
    async def route(
        request: Request,
        context: ContextDep,
        user: CurrentUser,
        session: CurrentToken,
        later: BackgroundTasks,
    ) -> Response:
        try:
            return await answer(action, await _asked(action, request, context, user, session, later))
        finally:
            await request.close()  # and files that were sent

    return route


async def _done(action: Action, asked: Asked) -> Response:
    if asked.is_preview:
        asked.request.scope[SUBJECT] = None
    try:
        if asked.is_preview:
            return await _question(action, asked)
        if action.starts_jobs:
            done = await asked.context.uploads.run(asked.user.name, lambda: action.do(asked))
        elif action.stores_data:
            done = await asked.context.data_uploads.run(asked.user.name, lambda: action.do(asked))
        else:
            done = await run_in_threadpool(action.do, asked)
    except WRONG as error:
        return await _question(action, replace(asked, is_preview=False, error=error))
    answer = RedirectResponse(done, 303) if isinstance(done, str) else done
    answer.background = asked.afterwards
    return answer


async def _asked(
    action: Action,
    request: Request,
    context: Context,
    user: UserRecord,
    session: TokenRecord,
    later: BackgroundTasks,
) -> Asked:
    form = await request.form() if request.method == "POST" else FormData()
    values: dict[str, Any] = {}
    for name, field in action.fields.model_fields.items():
        key = field.alias or name
        sent: FormData | QueryParams = form if key in form else request.query_params
        if key in sent:
            values[key] = sent.getlist(key) if get_origin(field.annotation) is list else sent[key]
    given = parsed(action.fields, values)
    id_ = request.path_params.get("id", "")
    if not id_.isprintable():  # databases refuse such texts each in its way
        raise NotFoundError(f"nothing is called {id_[:64]!r}", "check the address")
    return Asked(request, context, user, session, later, id_, given, is_preview="foresee" in form)


async def _question(action: Action, asked: Asked) -> Response:
    """The page that asks; if the question makes no sense after an error, that error."""
    try:
        view = await run_in_threadpool(action.ask, asked)
    except ServiceError as error:
        raise asked.error or error from None
    status = 200
    if asked.error is not None:
        status = asked.error.status
        view = replace(view, error=view.error or asked.error.message)
    return await run_in_threadpool(templating.page, asked.request, action.template, status=status, view=view)
