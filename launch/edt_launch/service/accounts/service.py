"""What REST and pages do with users and tokens."""

from typing import Any

from edt_launch.service.accounts import passwords, sessions, tokens
from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.accounts.schemas import NewPassword, NewToken, NewUser
from edt_launch.service.app.context import Context
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.states import LIVE


def give_password(context: Context, name: str, new: NewPassword, spared: str) -> None:
    """Set a user's password; with `revoke_tokens`, their tokens but for the `spared` one are revoked."""
    if len(new.password) < (least := context.settings.least_password):
        text = f"password: it has {len(new.password)} characters; {least} are needed"
        raise InvalidError(text, "choose a longer one")
    if new.password.startswith(tokens.PREFIX):
        raise InvalidError(f"password: it begins with {tokens.PREFIX}, as tokens do", "choose another one")
    is_known = context.store.accounts.set_password(
        name,
        passwords.hash_of(new.password),
        context.clock(),
        tokens_too=new.revoke_tokens,
        spared=spared,
    )
    if not is_known:
        raise NotFoundError(f"there is no user {name!r}", "GET /api/v1/users lists them")


def add_user(context: Context, shown: TokenRecord, new: NewUser) -> dict[str, Any]:
    """Let somebody use the service, and make a token for them that ends with the one `shown`."""
    now = context.clock()
    record = UserRecord(new.name, new.is_admin, now)
    if any(node.parent == new.name for node in context.store.shares.all()):
        raise ConflictError(f"{new.name!r} has a share with others below it", "choose another name")
    if not context.store.accounts.add_user(record):
        raise ConflictError(f"there is a user {new.name!r} already", "choose another name")
    context.store.shares.add_missing(ShareRecord(new.name, usage_at=now))
    parent = sessions.origin(context.store.accounts, shown)
    token, kept = tokens.issue(context.store.accounts, new.name, "first", now, parent=parent)
    context.changed()
    return {**vars(record), "token": token, "expires": kept.expires}


def remove_user(context: Context, user: UserRecord, name: str) -> None:
    """Let somebody no longer use the service: their tokens open nothing any more."""
    if name == user.name:
        raise ConflictError("you cannot remove yourself", "have another administrator do it")
    if context.store.jobs.page(JobQuery(states=LIVE, owners=[name], limit=1)).jobs:
        raise ConflictError(f"{name} has jobs that have not ended", "stop them first")
    if sets := context.data_sets.names(name):
        text = f"{name} has data sets: {', '.join(sets[:10])}"
        raise ConflictError(text, "delete them first: `edt data rm`")
    if not context.store.accounts.remove_user(name):
        raise NotFoundError(f"there is no user {name!r}", "GET /api/v1/users lists them")
    context.store.shares.remove(name)
    context.changed()


def check_self_or_admin(user: UserRecord, name: str, what: str, advice: str) -> None:
    """Refuse others than the user of that name and administrators what they ask for; `ForbiddenError`."""
    if not user.may_act_for(name):
        raise ForbiddenError(f"only administrators {what} {name}", advice)


def add_token(context: Context, user: UserRecord, shown: TokenRecord, new: NewToken) -> dict[str, Any]:
    """Make a token, which ends with the one `shown`, or with the token that a browser has logged on with."""
    whose = new.user or user.name
    check_self_or_admin(user, whose, "make tokens for", "make one for yourself")
    if context.store.accounts.user(whose) is None:
        raise NotFoundError(f"there is no user {whose!r}", "POST /api/v1/users adds one: `edt users add`")
    now, accounts = context.clock(), context.store.accounts
    parent = sessions.origin(accounts, shown)
    token, record = tokens.issue(accounts, whose, new.name, now, new.expires, parent=parent, scope=new.scope)
    return {**vars(record), "token": token}
