"""What the interface gives and takes of users and their tokens, as in `schemas`."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from edt_launch.service.accounts import passwords
from edt_launch.service.http.schemas import Body, UnixTime, listing
from edt_launch.service.jobs.specification import Name
from edt_launch.service.names import TEXT, USER

UserName = Annotated[str, StringConstraints(pattern=f"^{USER}$")]


class NewUser(Body):
    """Somebody to be let in."""

    name: UserName
    is_admin: bool = False


class UserAccount(BaseModel):
    """Somebody who may use the service."""

    name: str
    is_admin: bool
    created: float


class UserWithToken(UserAccount):
    """A new user, and a first token; only this answer contains it."""

    token: str
    expires: float | None = Field(description="When the token ends; null: never.")


Users = listing("Users", "Everybody who may use the service.", users=UserAccount)


class AuditedChange(BaseModel):
    """Somebody has changed something."""

    number: int
    time: float
    user: str
    method: str
    path: str = Field(description="Of the request, and what it was about where that does not say it.")


Audit = listing("Audit", "Changes, the newest first.", changes=AuditedChange)


class NewPassword(Body):
    """A user's password for WMLA's interfaces."""

    password: Annotated[
        str, StringConstraints(pattern=f"^{TEXT}$", max_length=passwords.MAX_PASSWORD_LENGTH)
    ] = Field(description="As long as the service's `least_password` wants it.")
    revoke_tokens: bool = Field(
        default=False, description="Revoke the user's tokens, too, but for the one that asks."
    )


class NewToken(Body):
    """A token to be made."""

    name: Annotated[Name, Field(max_length=64, description="What it is for.")] = ""
    expires: UnixTime | None = Field(
        default=None,
        description="When it opens nothing any more; null, or later than the token that asks: as that one.",
    )
    user: UserName | None = Field(default=None, description="Whose; for administrators. Your own by default.")
    scope: Literal["all", "read"] = Field(
        default="all", description="What it may do: everything that its user may, or only read (GET, HEAD)."
    )


class Token(BaseModel):
    """A token, without what is secret."""

    id: str
    name: str
    user: str
    created: float
    expires: float | None
    parent: str | None = Field(description="The token that it was made with, and is revoked with.")
    scope: Literal["all", "read"]
    used: float | None = Field(description="When it was last used, to a minute; null: never.")


class TokenWithSecret(Token):
    """A new token; only this answer contains it."""

    token: str


class LogonLink(BaseModel):
    """Where a browser can log on; only this answer contains it."""

    path: str = Field(description="To be appended to the service's address.")
    expires: float


Tokens = listing("Tokens", "Tokens that have not been revoked.", tokens=Token)
