"""The owners' tree and their shares, which administrators change."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from edt_launch.service.cluster import service
from edt_launch.service.cluster.pages.views import shares as views
from edt_launch.service.cluster.schemas import ShareChange
from edt_launch.service.cluster.store import fresh
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.names import ROOT, USER
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import MAX_FIELD_LENGTH, Text, parsed

router = APIRouter()

Json = Mapping[str, Any]


class ShareVersion(BaseModel):
    """The version of a node that a form is about; empty: whichever."""

    version: str = Field("", max_length=MAX_FIELD_LENGTH)


class ShareFields(ShareVersion):
    """Of a node, as its form has them."""

    name: Text = ""
    parent: Text = ""
    weight: Text = "1"
    guarantee: Text = "0"
    limit: Text = ""
    lends: Text = "yes"
    policy: Text = "fair"
    half_life: Text = "86400"
    budget: Text = ""

    @property
    def settings(self) -> dict[str, str]:
        """What is written, but for the name."""
        return {field: getattr(self, field).strip() for field in views.LABELS}

    def change(self, own: str) -> ShareChange:
        """The same as REST takes it, of the node of that name; raises `InvalidError`."""
        sent: dict[str, Any] = {**self.settings, "version": self.version or None}
        sent |= {field: sent[field] or None for field in ("limit", "budget")}
        if own == "":
            del sent["parent"]
        return parsed(ShareChange, sent)


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


def _ask_to_add(asked: Asked) -> Question:
    """The form for another node, or what adding it would change."""
    nodes, given = service.shares(asked.context), asked.given
    if asked.is_preview:
        return _preview(asked, _new_name(asked), views.values(_default()))
    return views.form(None, service.NEW, {**given.settings, "name": given.name}, nodes)


def _add(asked: Asked) -> str:
    name = _new_name(asked)
    asked.note(name)
    service.put_share(asked.context, name, asked.given.change(name))
    return views.LIST


def _new_name(asked: Asked) -> str:
    name: str = asked.given.name.strip()
    if not re.fullmatch(USER, name):
        raise InvalidError(
            f"name: {name!r} is not possible", "use letters, digits, '_', '.', '@' and '-', 64 at most"
        )
    if any(node["name"] == name for node in service.shares(asked.context)):
        raise InvalidError(f"name: there is a share of {name!r} already", "choose another name")
    return name


def _default() -> Json:
    """A node that is not there yet, as REST would show it."""
    return {**fresh("new").settings, "limit": None, "budget": None}


def _ask_to_change(asked: Asked) -> Question:
    """The form of a node, or what a change of it would change."""
    nodes, error, given = service.shares(asked.context), asked.error, asked.given
    node = _node(nodes, asked.id)
    own, present = node["name"], views.values(node)
    if asked.is_preview:
        return _preview(asked, own, present)
    if error is None:
        return views.form(own, node["version"], present, nodes)
    if isinstance(error, ConflictError):
        told = views.quicker(error.detail, given.settings, present)
        return views.form(own, node["version"], given.settings, nodes, told)
    return views.form(own, given.version, given.settings, nodes)


def _change(asked: Asked) -> str:
    own = _node(service.shares(asked.context), asked.id)["name"]
    service.put_share(asked.context, asked.id, asked.given.change(own))
    return views.LIST


def _preview(asked: Asked, own: str, present: Mapping[str, str]) -> Question:
    given = asked.given
    done = service.put_share(asked.context, own or ROOT, given.change(own), dry_run=True)
    hidden = {"version": given.version, "name": given.name, **given.settings}
    return views.preview(own, present, given.settings, hidden, done["changes"])


def _node(nodes: Sequence[Json], name: str) -> Json:
    """The node of which an address has this name; raises `NotFoundError`."""
    own = "" if name == ROOT else name
    node = next((node for node in nodes if node["name"] == own), None)
    if node is None or not name:
        raise NotFoundError(f"there is no share of {name[:64]!r}", "look at the page of shares")
    return node


def _ask_to_remove(asked: Asked) -> Question:
    node = _node(service.shares(asked.context), asked.id)
    changes = () if asked.error else service.remove_share(asked.context, asked.id, dry_run=True)
    return views.removal(node, changes, is_user=asked.context.store.accounts.user(asked.id) is not None)


def _remove(asked: Asked) -> str:
    service.remove_share(asked.context, asked.id, version=asked.given.version or None)
    return views.LIST


router.include_router(
    routes(
        [
            Action("/new-share", _ask_to_add, _add, ShareFields, is_for_admins=True),
            Action("/shares/{id}", _ask_to_change, _change, ShareFields, is_for_admins=True),
            Action("/shares/{id}/remove", _ask_to_remove, _remove, ShareVersion, is_for_admins=True),
        ]
    )
)
