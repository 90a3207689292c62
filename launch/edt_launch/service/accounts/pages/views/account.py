"""What the account page shows."""

from dataclasses import dataclass

from edt_launch.service.accounts.records import TokenRecord
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Field, Question

MAY = {"all": "Full access", "read": "Read only"}
"""What tokens of a scope may do, in words."""


@dataclass(frozen=True)
class Fresh:
    """A new token, which is shown this once, and whose it is."""

    user: str
    token: str


def password_question(name: str, *, is_own: bool) -> Question:
    """The form for one's own password, or for somebody else's."""
    sessions = "All browsers that are logged on as you are" if is_own else "Browsers that they use are"
    fields = [
        Field(
            "secret",
            "Your password now, or a token of yours that does not end",
            "",
            False,
            (),
            "current-password",
        ),
        Field("password", "New password", "", False, (), "new-password"),
    ]
    effect = f"{sessions} logged off by that."
    return Question(
        "Set the password of", name, [effect], "/account" if is_own else "/users", fields, button="Set"
    )


def revocation(token: TokenRecord) -> Question:
    """The question about revoking a token, or ending a session."""
    if token.is_browser:
        began = f"the browser that logged on at {wording.moment(token.created)}"
        return Question("Log off", began, ["It can log on again."], "/account")
    effect = (
        "Programs that use it are refused from then on, as are tokens and browsers that were let in with it."
    )
    command = f"edt tokens revoke {token.id}"
    return Question("Revoke", token.name or token.id, [effect], "/account", command=command)
