"""Who may use the service; for administrators."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from anyio import from_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts import service
from edt_launch.service.accounts.pages.new_token_cookie import Fresh, clear, redirect_with, token_of
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.accounts.schemas import NewUser
from edt_launch.service.accounts.sessions import IDLE
from edt_launch.service.app.context import Context
from edt_launch.service.cluster import pictures
from edt_launch.service.errors import NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentAdmin
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import Text, parsed

router = APIRouter()

WEEK = 7 * 86400.0

CHANGES = 100
"""Changes of a page."""


class UserFields(BaseModel):
    """Of a user to be added."""

    name: Text = ""
    is_admin: bool = False


@dataclass(frozen=True)
class UsersView:
    """Everybody who may use the service; what is known of them besides, by their names.

    Attributes:
        parents: the node of the owners' tree that each is below.
        jobs, devices: that have not ended; that these have.
        hours: of devices that their jobs had in the last seven days.
        tokens: that open something, without browsers.
        seen: when they last used a page.
        notify: the command that is run when a job has ended.
        fresh: the first token of somebody who has just been added.
    """

    users: Sequence[UserRecord]
    parents: Mapping[str, str]
    jobs: Mapping[str, int]
    devices: Mapping[str, int]
    hours: Mapping[str, float]
    tokens: Mapping[str, int]
    seen: Mapping[str, float]
    notify: str | None
    fresh: Fresh | None = None
    given: UserFields = field(default_factory=UserFields)
    error: str = ""


def _view(context: Context, had: Mapping[str, Any], **more: Any) -> UsersView:
    """The page; `had` is the picture of the last seven days."""
    store, now = context.store, context.clock()
    jobs, devices, tokens = Counter[str](), Counter[str](), Counter[str]()
    seen: dict[str, float] = {}
    for job in store.jobs.holders():
        jobs[job.owner] += 1
        devices[job.owner] += sum(len(names) for _, names in job.held)
    for token in store.accounts.tokens():
        if token.idle_until is not None:
            seen[token.user] = max(seen.get(token.user, 0.0), token.idle_until - IDLE)
        elif token.opens(now):
            tokens[token.user] += 1
    return UsersView(
        users=store.accounts.users(),
        parents={share.name: share.parent or "" for share in store.shares.all()},
        jobs=jobs,
        devices=devices,
        hours={one["owner"]: one["hours"] for one in had["owners"]},
        tokens=tokens,
        seen=seen,
        notify=context.settings.notify,
        **more,
    )


@router.get("/users")
async def show(request: Request, context: ContextDep, user: CurrentAdmin) -> Response:
    """Everybody who may use the service, and the first token of somebody who has just been added."""
    fresh, had = token_of(request), await pictures.latest(context, WEEK)

    def page() -> Response:
        return templating.page(request, "users.html", view=_view(context, had, fresh=fresh))

    answer = await run_in_threadpool(page)
    return clear(request, answer) if fresh else answer


def _ask_to_add(asked: Asked) -> UsersView:
    had = from_thread.run(pictures.latest, asked.context, WEEK)
    return _view(asked.context, had, given=asked.given)


def _add(asked: Asked) -> Response:
    """Let somebody use the service; the page shows their first token once."""
    new = parsed(NewUser, {"name": asked.given.name.strip(), "is_admin": asked.given.is_admin})
    made = service.add_user(asked.context, asked.session, new)
    asked.note(f"{new.name} {'administrator' if new.is_admin else 'user'}")
    return redirect_with(asked.request, "/users", Fresh(new.name, made["token"]))


def user_of(context: Context, name: str) -> UserRecord:
    """The user of a name; raises `NotFoundError`."""
    user = context.store.accounts.user(name)
    if user is None:
        raise NotFoundError(
            f"there is no user {name[:64]!r}", "look at the page of users for those that there are"
        )
    return user


def _ask_to_remove(asked: Asked) -> Question:
    name = user_of(asked.context, asked.id).name
    effect = (
        "Their tokens and browsers are refused from then on. Their jobs stay: their owner is called"
        f" {name}~1, or with the next free number, so that nobody who is added as {name} later gets them."
    )
    return Question("Remove", name, [effect], "/users", command=f"edt users remove {name}")


def _remove(asked: Asked) -> str:
    service.remove_user(asked.context, asked.user, asked.id)
    return "/users"


@router.get("/users/changes")
def changes(
    request: Request,
    context: ContextDep,
    user: CurrentAdmin,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Who has changed what."""
    found = context.store.audit.newest(CHANGES, before)
    older = found[-1].number if len(found) == CHANGES else None
    return templating.page(request, "changes.html", changes=found, older=older)


router.include_router(
    routes(
        [
            Action(
                "/users",
                _ask_to_add,
                _add,
                UserFields,
                is_for_admins=True,
                template="users.html",
                is_on_page=True,
            ),
            Action("/users/{id}/remove", _ask_to_remove, _remove, is_for_admins=True),
        ]
    )
)
