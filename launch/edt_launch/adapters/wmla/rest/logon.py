"""Logging on and off: a session's cookie in 1.2.x, an access token in 2.x."""

from typing import Annotated, cast

from fastapi import APIRouter, Request, Response
from fastapi.params import Depends

from edt_launch.adapters.wmla.rest.authenticator import (
    AUTH,
    CONDUCTOR,
    COOKIE,
    PROOF,
    Password,
    Token,
    cookie,
)
from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import UnauthorizedError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser

LASTS = 8 * 3600
"""Seconds for which a session lasts."""

router = APIRouter()


async def _proof(request: Request) -> Password | Token:
    return cast("Password | Token", request.scope[PROOF])


Proof = Annotated[Password | Token, Depends(_proof)]


@router.get(f"{CONDUCTOR}/auth/logon")
def log_on_with_cookie(
    request: Request, response: Response, context: ContextDep, user: CurrentUser, proof: Proof
) -> dict[str, str]:
    """Begin a session; its cookie opens Conductor's part and that of deep learning."""
    response.set_cookie(
        COOKIE,
        _session(context, proof),
        max_age=LASTS,
        path="/platform/rest",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return {"username": user.name}


@router.get(f"{CONDUCTOR}/auth/logoff")
@router.post(f"{CONDUCTOR}/auth/logoff")
def log_off_with_cookie(
    request: Request, response: Response, context: ContextDep, user: CurrentUser, proof: Proof
) -> dict[str, str]:
    """End a session, also if a password was sent with its cookie."""
    _end(context, user, proof)
    _end(context, user, cookie(request.headers.get("cookie", "")))
    response.delete_cookie(COOKIE, path="/platform/rest")
    return {}


@router.get(f"{AUTH}/logon")
def log_on(context: ContextDep, proof: Proof) -> dict[str, str]:
    """An access token for the next hours."""
    return {"accessToken": _session(context, proof)}


@router.post(f"{AUTH}/logoff", status_code=204, response_class=Response)
def log_off(context: ContextDep, user: CurrentUser, proof: Proof) -> None:
    """Let an access token open nothing any more."""
    _end(context, user, proof)


def _session(context: Context, proof: Password | Token) -> str:
    """A new token; who has shown one already keeps it, so that what revokes that one ends the session."""
    if isinstance(proof, Token):
        raise UnauthorizedError("a user name and a password are needed to log on", "send them as Basic")
    if proof.password.startswith(tokens.PREFIX):
        return proof.password
    now, accounts = context.clock(), context.store.accounts
    accounts.forget_sessions(proof.name, now)
    token, _ = tokens.issue(
        accounts,
        proof.name,
        "session",
        now,
        now + LASTS,
        is_session=True,
        password_hash=proof.stored,
    )
    return token


def _end(context: Context, user: UserRecord, proof: Password | Token | None) -> None:
    """Revoke the token of a user's session; one that was made for longer stays."""
    if isinstance(proof, Token):
        context.store.accounts.end_session(user.name, tokens.hash_of(proof.token), context.clock())
