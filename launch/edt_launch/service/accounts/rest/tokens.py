"""`/api/v1/tokens`: what users prove with who they are."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from edt_launch.service.accounts import schemas as account_schemas
from edt_launch.service.accounts import service, sessions
from edt_launch.service.errors import NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentToken, CurrentUser
from edt_launch.service.names import USER

router = APIRouter(tags=["users"])


@router.get("/tokens", response_model=account_schemas.Tokens)
def tokens(
    context: ContextDep,
    user: CurrentUser,
    owner: Annotated[
        str | None, Query(alias="user", pattern=f"^{USER}$", description="Whose; for administrators.")
    ] = None,
) -> Any:
    """Your tokens that have not been revoked, without what is secret."""
    whose = user.name if owner is None else owner
    service.check_self_or_admin(user, whose, "list the tokens of", "ask for your own")
    return {"tokens": context.store.accounts.tokens(whose)}


@router.post("/tokens", status_code=201, response_model=account_schemas.TokenWithSecret)
def add(context: ContextDep, user: CurrentUser, shown: CurrentToken, new: account_schemas.NewToken) -> Any:
    """A new token; it is told only now. It ends with the token that it is made with, if not before.

    One that is made in a browser ends with the token that the browser has logged on with, if it was one.
    """
    return service.add_token(context, user, shown, new)


@router.post("/logon-links", status_code=201, response_model=account_schemas.LogonLink)
def add_link(context: ContextDep, user: CurrentUser, shown: CurrentToken) -> Any:
    """A path of the service at which a browser can log on as you, once, within five minutes."""
    return sessions.link(context.store.accounts, shown, context.clock())


@router.delete("/tokens/{token_id}", status_code=204, response_class=Response)
def revoke(
    context: ContextDep,
    user: CurrentUser,
    token_id: Annotated[str, Path(pattern="^[0-9a-f]{1,16}$")],
    only: Annotated[bool, Query(description="Leave the tokens that were made with it.")] = False,
) -> None:
    """Let a token open nothing any more, nor the tokens that were made with it."""
    if not context.store.accounts.revoke(token_id, user.confined_to, context.clock(), only=only):
        raise NotFoundError(f"there is no token {token_id!r}", "GET /api/v1/tokens lists them")
