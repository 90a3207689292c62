"""Users and their tokens."""

import contextlib
from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import (
    allocations,
    codes,
    definitions,
    experiments,
    jobs,
    projects,
    runs,
    tokens,
    users,
)

_USER = select(users.c.name, users.c.is_admin, users.c.created)
"""The columns of a `UserRecord`: the hash of the password is nobody else's business."""


_NAMING = (
    *(table.c.owner for table in (jobs, allocations, projects, definitions, codes, experiments, runs)),
    *(table.c.changed_by for table in (projects, definitions, experiments)),
)
"""The columns that name users who may be removed."""

MAX_STEM = 52
"""Characters of a removed user's name that are kept, of 64 with its number."""


class Accounts:
    """The tables of users and of tokens.

    Attributes:
        withdrawals: how often a token, or whatever else opens the service, may have ceased to do so.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.withdrawals = 0

    def users(self) -> list[UserRecord]:
        """All users, by name."""
        return [UserRecord(**row._mapping) for row in self._database.rows(_USER.order_by(users.c.name))]

    def user(self, name: str) -> UserRecord | None:
        """One user; None if there is none of that name."""
        rows = self._database.rows(_USER.where(users.c.name == name))
        return UserRecord(**rows[0]._mapping) if rows else None

    def password(self, name: str) -> str | None:
        """The hash of a user's password; None if they have none, or there is no such user."""
        password: str | None = self._database.value(select(users.c.password).where(users.c.name == name))
        return password

    def set_password(
        self,
        name: str,
        password_hash: str,
        now: float,
        *,
        tokens_too: bool = False,
        spared: str | None = None,
    ) -> bool:
        """Store the hash of a user's password and end their sessions; False if there is no such user.

        With `tokens_too` their other tokens are revoked, too, but for the one whose id is `spared`.
        """
        with self._withdrawing() as connection:
            # First of all: whoever is logging on with the old one has done so by now, or finds the new one.
            change = update(users).where(users.c.name == name).values(password=password_hash)
            is_known = bool(connection.execute(change).rowcount)
            _revoke(connection, now, tokens.c.user == name, tokens.c.is_session)
            if tokens_too:
                _revoke(connection, now, tokens.c.user == name, spared=spared)
            return is_known

    def end_session(self, user: str, token_hash: str, now: float) -> None:
        """Revoke the token with this hash, if it is that of a session of the user's."""
        with self._withdrawing() as connection:
            _revoke(connection, now, tokens.c.user == user, tokens.c.hash == token_hash, tokens.c.is_session)

    def forget_sessions(self, user: str, now: float) -> None:
        """Delete a user's sessions that are over."""
        over = or_(tokens.c.expires <= now, tokens.c.idle_until <= now, tokens.c.revoked.is_not(None))
        self._database.execute(delete(tokens).where(tokens.c.user == user, tokens.c.is_session, over))

    def add_user(self, user: UserRecord) -> bool:
        """Add a user; False if there is one of that name."""
        with self._database.writing() as connection:
            if connection.execute(_USER.where(users.c.name == user.name)).first() is not None:
                return False
            _retire(connection, user.name)  # of what was being submitted while an earlier one was removed
            connection.execute(insert(users).values(vars(user)))
            return True

    def remove_user(self, name: str) -> bool:
        """Forget a user and their tokens; False if there is none of that name.

        What is theirs, jobs for instance, gets an owner that nobody can be, such as ``ann~1``: the next user
        of that name is somebody else.
        """
        with self._withdrawing() as connection:
            is_known = bool(connection.execute(delete(users).where(users.c.name == name)).rowcount)
            if is_known:
                _retire(connection, name)
            return is_known

    def add_token(self, token: TokenRecord, password_hash: str | None = None) -> bool:
        """Store a token's hash; False if what it is given for is not valid any more.

        That is the token that it was made with, or the password with this hash.
        """
        password = select(users.c.name).where(users.c.name == token.user, users.c.password == password_hash)
        password = password.with_for_update()
        parent = select(tokens.c.id).where(tokens.c.id == token.parent, *_valid(token.created))
        with self._database.writing() as connection:
            # The lock makes a revocation of the parent wait, which then finds the child.
            if token.parent is not None and connection.execute(parent.with_for_update()).first() is None:
                return False
            # So does this one with a change of the password.
            if password_hash is not None and connection.execute(password).first() is None:
                return False
            connection.execute(insert(tokens).values(vars(token)))
            return True

    def tokens(self, user: str | None = None) -> list[TokenRecord]:
        """The tokens of a user, or of all, that have not been revoked; oldest first."""
        query = select(tokens).where(tokens.c.revoked.is_(None)).order_by(tokens.c.created, tokens.c.id)
        if user is not None:
            query = query.where(tokens.c.user == user)
        return [TokenRecord(**row._mapping) for row in self._database.rows(query)]

    def revoke(self, token: str, user: str | None, now: float, *, only: bool = False) -> bool:
        """Revoke a token, and unless `only` what was made with it; False if there is none.

        `user` is whose it has to be; None for anybody's.
        """
        query = update(tokens).where(tokens.c.id == token, tokens.c.revoked.is_(None))
        if user is not None:
            query = query.where(tokens.c.user == user)
        with self._withdrawing() as connection:
            is_revoked = bool(connection.execute(query.values(revoked=now)).rowcount)
            if is_revoked and not only:
                _revoke(connection, now, tokens.c.id == token)
            return is_revoked

    @contextlib.contextmanager
    def _withdrawing(self) -> Iterator[Connection]:
        with self._database.writing() as connection:
            yield connection
        self.withdrawals += 1

    def note_use(self, token: str, now: float, idle_until: float | None = None) -> None:
        """Note that a token has been used, and, of a browser's session, when it ends without further use."""
        change = update(tokens).where(tokens.c.id == token)
        self._database.execute(change.values(used=now, idle_until=idle_until))

    def end_browsers(self, user: str, spared: str, now: float) -> None:
        """Revoke a user's sessions of browsers, but for the one whose id is `spared`."""
        with self._withdrawing() as connection:
            which = tokens.c.user == user, tokens.c.idle_until.is_not(None), tokens.c.id != spared
            _revoke(connection, now, *which)

    def take_once(self, token_hash: str, now: float) -> TokenRecord | None:
        """Use up the token with this hash that logs on once; None if it has been, or is not valid."""
        query = select(tokens).where(tokens.c.hash == token_hash, *_valid(now, is_once=True))
        with self._withdrawing() as connection:
            row = connection.execute(query.with_for_update()).one_or_none()
            if row is None or not connection.execute(delete(tokens).where(tokens.c.id == row.id)).rowcount:
                return None
        return TokenRecord(**row._mapping)

    def bearer(self, token_hash: str, now: float) -> tuple[UserRecord, TokenRecord] | None:
        """The token with this hash and whose it is; None if there is none, or it is not valid any more."""
        query = select(tokens).where(tokens.c.hash == token_hash, *_valid(now))
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            user = connection.execute(_USER.where(users.c.name == row.user)).one()
        return UserRecord(**user._mapping), TokenRecord(**row._mapping)


def _retire(connection: Connection, name: str) -> None:
    """Give what is left of a removed user to an owner of a new name."""
    stem = f"{name[:MAX_STEM]}~"
    numbers = [0]
    for column in _NAMING:
        query = select(column).where(column.startswith(stem, autoescape=True)).distinct()
        numbers += [int(owner[len(stem) :]) for owner in connection.execute(query).scalars()]
    retired = f"{stem}{max(numbers) + 1}"
    for column in _NAMING:
        connection.execute(update(column.table).where(column == name).values({column: retired}))


def _valid(now: float, *, is_once: bool = False) -> tuple[ColumnElement[bool], ...]:
    return (
        tokens.c.revoked.is_(None),
        or_(tokens.c.expires.is_(None), tokens.c.expires > now),
        or_(tokens.c.idle_until.is_(None), tokens.c.idle_until > now),
        tokens.c.is_once.is_(is_once),
    )


def _revoke(
    connection: Connection, now: float, *which: ColumnElement[bool], spared: str | None = None
) -> None:
    """Revoke tokens, and what was made with them, by whomever."""
    tree = select(tokens.c.id).where(*which).cte(recursive=True)
    tree = tree.union(select(tokens.c.id).join(tree, tokens.c.parent == tree.c.id))
    change = update(tokens).where(tokens.c.id.in_(select(tree.c.id)), tokens.c.revoked.is_(None))
    if spared is not None:
        change = change.where(tokens.c.id != spared)
    # PostgreSQL may have waited for somebody who was just making another one: then there is more to revoke.
    while connection.execute(change.values(revoked=now)).rowcount > 0:
        pass
