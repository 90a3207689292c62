"""Setting passwords: one's own, and for administrators anybody's, by whoever proves again who they are.

A session is not enough for that: it ends, and a password set with it would not.
"""

from anyio import from_thread
from pydantic import BaseModel, Field

from edt_launch.service.accounts import schemas, tokens
from edt_launch.service.accounts.pages.users import user_of
from edt_launch.service.accounts.service import give_password
from edt_launch.service.errors import (
    ForbiddenError,
    InvalidError,
    LockedError,
    UnauthorizedError,
)
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Field as FormField
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import parsed


class Secrets(BaseModel):
    """What proves who asks, and the new password."""

    secret: str = Field("", max_length=2048)
    password: str = Field("", max_length=2048)


def _question(name: str, sessions: str, back: str) -> Question:
    now = "Your password now, or a token of yours that does not end"
    fields = [
        FormField("secret", now, "", is_number=False, secret="current-password"),
        FormField("password", "New password", "", is_number=False, secret="new-password"),
    ]
    effect = [f"{sessions} logged off by that."]
    return Question("Set the password of", name, effect, back, fields, button="Set")


def _ask_own(asked: Asked) -> Question:
    return _question(asked.user.name, "All browsers that are logged on as you are", "/account")


def _set_own(asked: Asked) -> str:
    """Set it: sessions end by that, this one too."""
    _set(asked, asked.user.name)
    return "/logon"


def _ask(asked: Asked) -> Question:
    return _question(user_of(asked.context, asked.id).name, "Browsers that they use are", "/users")


def _set_others(asked: Asked) -> str:
    """Set it: that user's sessions end."""
    _set(asked, asked.id)
    return "/users"


def _set(asked: Asked, name: str) -> None:
    try:
        _prove(asked, asked.given.secret)
        new = parsed(schemas.NewPassword, {"password": asked.given.password})
        give_password(asked.context, name, new, asked.session.id)
    except (ForbiddenError, LockedError, UnauthorizedError) as error:
        raise InvalidError(error.detail, error.next_step) from None


def _prove(asked: Asked, secret: str) -> None:
    """See whether a secret is the user's password, or a token of theirs that does not end."""
    request, user = asked.request, asked.user
    if not secret.startswith(tokens.PREFIX):
        address = request.client.host if request.client else ""
        from_thread.run(request.app.state.password_logon.check, user.name, secret, address)
        return
    bearer = tokens.bearer(asked.context.store.accounts, secret, asked.context.clock())
    if bearer is None or bearer[0].name != user.name:
        raise UnauthorizedError("unknown or expired token, or not yours", "check it")
    if bearer[1].expires is not None:
        raise UnauthorizedError("the token ends, and a password set with it would not", "use another one")
    tokens.check_scope(bearer[1], request.method)


router = routes(
    [
        Action("/account/password", _ask_own, _set_own, Secrets),
        Action("/users/{id}/password", _ask, _set_others, Secrets, is_for_admins=True),
    ]
)
