"""The owners' tree and their shares, which administrators change."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, ValidationError

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.cluster import schemas as cluster_schemas
from edt_launch.service.cluster import service
from edt_launch.service.cluster.pages.views import shares as views
from edt_launch.service.cluster.store import fresh
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import (
    PREVIEWED,
    SUBJECT,
    ContextDep,
    CurrentAdmin,
    CurrentUser,
    NodeName,
)
from edt_launch.service.names import ROOT, USER
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import MAX_FIELD_LENGTH, Value

router = APIRouter()

Json = dict[str, Any]


class ShareForm:
    """What a form was sent with."""

    def __init__(
        self,
        version: Value = "",
        name: Value = "",
        parent: Value = "",
        weight: Value = "1",
        guarantee: Value = "0",
        limit: Value = "",
        lends: Value = "yes",
        policy: Value = "fair",
        half_life: Value = "86400",
        budget: Value = "",
    ) -> None:
        self.version = version
        self.name = name.strip()
        sent = (parent, weight, guarantee, limit, lends, policy, half_life, budget)
        settings = dict(zip(views.LABELS, sent, strict=True))
        self.settings = {field: value.strip() for field, value in settings.items()}

    def change(self, own: str) -> cluster_schemas.ShareChange:
        """The same as REST takes it, of the node of that name; raises `InvalidError`."""
        optional = {field: self.settings[field] or None for field in ("limit", "budget")}
        sent: Json = {**self.settings, **optional, "version": self.version}
        if own == "":
            del sent["parent"]
        try:
            return cluster_schemas.ShareChange.model_validate(sent)
        except ValidationError as error:
            raise InvalidError(problems.invalid(error.errors()).detail) from None


GivenDep = Annotated[ShareForm, Depends()]
DryRun = Annotated[bool, Query()]


@router.get("/shares")
async def show(request: Request, context: ContextDep, user: CurrentUser) -> Response:
    """The tree."""
    return await templating.shared_page(
        request,
        user.is_admin,
        "shares.html",
        lambda: views.shares(
            service.shares(context),
            service.cluster(context)["devices"],
            {one.name for one in context.store.accounts.users()},
        ),
    )


@router.get("/new-share")
def ask_new(request: Request, context: ContextDep, user: CurrentAdmin) -> Response:
    """The form for another node."""
    parents = [node["name"] for node in service.shares(context)]
    view = views.form(None, service.NEW, ShareForm().settings, parents)
    return templating.page(request, "act.html", view=view)


@router.post("/new-share")
def preview_new(request: Request, context: ContextDep, user: CurrentAdmin, given: GivenDep) -> Response:
    """What adding a node would change, and the button for it; or what was wrong with the form."""
    request.scope[SUBJECT] = None
    nodes = service.shares(context)
    error = ""
    if not re.fullmatch(USER, given.name):
        error = (
            f"name: {given.name!r} is not possible: use letters, digits, '_', '.', '@' and '-', 64 at most"
        )
    elif any(node["name"] == given.name for node in nodes):
        error = f"name: there is a share of {given.name!r} already: choose another name"
    if error:
        parents = [node["name"] for node in nodes]
        view = views.form(None, given.version, given.settings | {"name": given.name}, parents, error)
        return templating.page(request, "act.html", status=InvalidError.status, view=view)
    return _answer(request, context, user, given.name, given, dry_run=True, is_new=True)


@router.get("/shares/{node}")
def ask(request: Request, context: ContextDep, user: CurrentAdmin, node: NodeName) -> Response:
    """The form of a node."""
    nodes = service.shares(context)
    own = "" if node == ROOT else node
    found = _node(nodes, own)
    view = views.form(own, found["version"], views.values(found), views.parents(nodes, own))
    return templating.page(request, "act.html", view=view)


@router.post("/shares/{node}", dependencies=[PREVIEWED])
def change(
    request: Request,
    context: ContextDep,
    user: CurrentAdmin,
    node: NodeName,
    given: GivenDep,
    dry_run: DryRun = False,
) -> Response:
    """Change a node, or say who would gain and lose by that; or what was wrong with the form."""
    return _answer(request, context, user, "" if node == ROOT else node, given, dry_run=dry_run)


def _answer(
    request: Request,
    context: Context,
    user: UserRecord,
    own: str,
    given: ShareForm,
    *,
    dry_run: bool,
    is_new: bool = False,
) -> Response:
    told, nodes = "", service.shares(context)
    node = _found(nodes, own) or _absent(own)
    try:
        done = service.put_share(context, own or ROOT, given.change(own), dry_run=dry_run)
    except (InvalidError, NotFoundError) as error:
        status, version = error.status, given.version
        told = error.message
    except ConflictError as error:
        node = _found(service.shares(context), own) or _absent(own)
        status, version = error.status, node["version"]
        told = views.quicker(error.detail, given.settings, views.values(node))
    if told:
        sent = given.settings | ({"name": own} if is_new else {})
        view = views.form(None if is_new else own, version, sent, views.parents(nodes, own), told)
        return templating.page(request, "act.html", status=status, view=view)
    if not dry_run:
        return RedirectResponse(views.LIST, 303)
    view = views.preview(own, given.version, views.values(node), given.settings, done["changes"])
    return templating.page(request, "act.html", view=view)


def _node(nodes: Sequence[Json], own: str) -> Json:
    node = _found(nodes, own)
    if node is None:
        raise NotFoundError(f"there is no share of {own!r}", "look at the page of shares")
    return node


def _found(nodes: Sequence[Json], own: str) -> Json | None:
    return next((node for node in nodes if node["name"] == own), None)


def _absent(own: str) -> Json:
    """A node that is not there yet, as REST would show it."""
    node = fresh(own)
    return {**node.settings, "name": own, "version": node.version, "limit": None}


class Seen(BaseModel):
    """The version of a node that its removal is about; empty: whichever."""

    version: str = Field("", max_length=MAX_FIELD_LENGTH)


def _ask_removal(asked: Asked) -> Question:
    node = _node(service.shares(asked.context), "" if asked.id == ROOT else asked.id)
    changes = () if asked.error else service.remove_share(asked.context, asked.id, dry_run=True)
    return views.removal(node, changes, is_user=asked.context.store.accounts.user(asked.id) is not None)


def _remove(asked: Asked) -> str:
    service.remove_share(asked.context, asked.id, version=asked.given.version or None)
    return views.LIST


router.include_router(
    routes([Action("/shares/{id}/remove", _ask_removal, _remove, Seen, is_for_admins=True)])
)
