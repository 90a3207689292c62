"""Users and their tokens."""

from sqlalchemy import delete, insert, or_, select, update

from edt_launch.service.database.engine import Database
from edt_launch.service.database.records import TokenRecord, UserRecord
from edt_launch.service.database.tables import tokens, users

_USER = (users.c.name, users.c.is_admin, users.c.created)
"""Columns of a `UserRecord`: the hash of the password is nobody else's business."""


class Accounts:
    """The tables of users and of tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def users(self) -> list[UserRecord]:
        """All users, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(select(*_USER).order_by(users.c.name))
            return [UserRecord(**row._mapping) for row in rows]

    def user(self, name: str) -> UserRecord | None:
        """One user; None if there is none of that name."""
        with self._database.reading() as connection:
            row = connection.execute(select(*_USER).where(users.c.name == name)).one_or_none()
        return None if row is None else UserRecord(**row._mapping)

    def password(self, name: str) -> str | None:
        """The hash of a user's password; None if he has none, or there is no such user."""
        with self._database.reading() as connection:
            found: str | None = connection.execute(
                select(users.c.password).where(users.c.name == name)
            ).scalar()
        return found

    def set_password(self, name: str, password_hash: str, now: float) -> bool:
        """Store the hash of a user's password and end his sessions; False if there is no such user."""
        ours = (tokens.c.user == name, tokens.c.is_session, tokens.c.revoked.is_(None))
        with self._database.writing() as connection:
            connection.execute(update(tokens).where(*ours).values(revoked=now))
            change = update(users).where(users.c.name == name).values(password=password_hash)
            return bool(connection.execute(change).rowcount)

    def end_session(self, user: str, token_hash: str, now: float) -> None:
        """Revoke the token with this hash, if it is that of a session of the user's."""
        ours = (tokens.c.user == user, tokens.c.hash == token_hash, tokens.c.is_session)
        session = (*ours, tokens.c.revoked.is_(None))
        with self._database.writing() as connection:
            connection.execute(update(tokens).where(*session).values(revoked=now))

    def forget_sessions(self, user: str, now: float) -> None:
        """Delete a user's sessions that are over."""
        over = or_(tokens.c.expires <= now, tokens.c.revoked.is_not(None))
        with self._database.writing() as connection:
            connection.execute(delete(tokens).where(tokens.c.user == user, tokens.c.is_session, over))

    def add_user(self, user: UserRecord) -> bool:
        """Add a user; False if there is one of that name."""
        with self._database.writing() as connection:
            if connection.execute(select(users.c.name).where(users.c.name == user.name)).first() is not None:
                return False
            values = {column.name: getattr(user, column.name) for column in _USER}
            connection.execute(insert(users).values(values))
            return True

    def remove_user(self, name: str) -> bool:
        """Forget a user and his tokens; False if there is none of that name."""
        with self._database.writing() as connection:
            return bool(connection.execute(delete(users).where(users.c.name == name)).rowcount)

    def add_token(self, token: TokenRecord) -> None:
        """Store a token's hash."""
        values = {column.name: getattr(token, column.name) for column in tokens.columns}
        with self._database.writing() as connection:
            connection.execute(insert(tokens).values(values))

    def tokens(self, user: str | None = None) -> list[TokenRecord]:
        """The tokens of a user, or of all, that have not been revoked; oldest first."""
        query = select(tokens).where(tokens.c.revoked.is_(None)).order_by(tokens.c.created, tokens.c.id)
        if user is not None:
            query = query.where(tokens.c.user == user)
        with self._database.reading() as connection:
            return [TokenRecord(**row._mapping) for row in connection.execute(query)]

    def revoke(self, token: str, user: str | None, now: float) -> bool:
        """Revoke a token by its id; False if there is none such, or it is not `user`'s (None: anybody's)."""
        query = update(tokens).where(tokens.c.id == token, tokens.c.revoked.is_(None))
        if user is not None:
            query = query.where(tokens.c.user == user)
        with self._database.writing() as connection:
            return bool(connection.execute(query.values(revoked=now)).rowcount)

    def bearer(self, token_hash: str, now: float) -> UserRecord | None:
        """Whose token has this hash; None if there is none, or it is not valid any more."""
        query = (
            select(*_USER)
            .join(tokens, tokens.c.user == users.c.name)
            .where(tokens.c.hash == token_hash, tokens.c.revoked.is_(None))
            .where(or_(tokens.c.expires.is_(None), tokens.c.expires > now))
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else UserRecord(**row._mapping)
