"""Authentication at WMLA's interfaces: Basic, tokens and session cookies; errors as plain text."""

import re
import time
from enum import Enum

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from edt_launch.adapters.wmla.rest import credentials, plain
from edt_launch.adapters.wmla.rest.bases import DEEP_LEARNING
from edt_launch.adapters.wmla.rest.credentials import Password, Token
from edt_launch.service import tokens
from edt_launch.service.api import problems
from edt_launch.service.api.authenticator import FORM
from edt_launch.service.api.context import USER, Context
from edt_launch.service.database.engine import AWAY
from edt_launch.service.database.records import UserRecord
from edt_launch.service.errors import ServiceError, TooLargeError, UnauthorizedError, UnavailableError
from edt_launch.service.names import USER as USER_NAME
from edt_launch.service.passwords import Verifier

UPLOADS = frozenset({f"{DEEP_LEARNING}/execs", f"{DEEP_LEARNING}/hypersearch"})
"""Paths to which code is sent."""

AT_ONCE = 2
"""Passwords that are verified at a time: each takes 64 MB, and other requests are not to wait for them."""

WAITING = 64
"""Requests that may wait for that."""

SMALLER = "send what the script needs alone, and have it read data from DATA_DIR"
"""What to do about a body that is too large; `.edtignore` means nothing to these clients."""

STYLE, PROOF = "edt_wmla_style", "edt_wmla_proof"
"""Where in a request's scope its style is, and the `Password` or `Token` that it was let in by."""


class Style(Enum):
    """In whose manner a request is to be answered."""

    CLASSIC = "1.2.x"
    MODERN = "2.x"


class WmlaAuthenticator:
    """Lets requests in.

    Args:
        context: the service's parts.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._verifier = Verifier()
        self._slowly = CapacityLimiter(AT_ONCE)

    def limit(self, scope: Scope) -> int:
        """Bytes that its body may have."""
        settings = self._context.settings
        is_upload = scope["method"] == "POST" and scope["path"] in UPLOADS
        return settings.max_upload + FORM if is_upload else settings.max_body

    async def identify(self, scope: Scope) -> None:
        """Put who asks into the scope, in which manner, and what proves it.

        Raises:
            UnauthorizedError: nobody knows who it is.
            UnavailableError: the database does not answer, or too many log on at once.
        """
        proof = credentials.of(Headers(scope=scope))
        if proof is None:
            raise UnauthorizedError(
                "no user name and password, and no token, was given", "send an Authorization header"
            )
        try:
            user = await (self._owner(proof) if isinstance(proof, Token) else self._named(proof))
        except AWAY as error:
            raise problems.no_database(error) from None
        if user is None:
            raise UnauthorizedError(
                "the token is unknown, expired or revoked"
                if isinstance(proof, Token)
                else "the user name or the password is wrong",
                "log on again",
            )
        is_modern = isinstance(proof, Token) and not proof.is_cookie
        scope[USER], scope[PROOF] = user, proof
        scope[STYLE] = Style.MODERN if is_modern else Style.CLASSIC

    def refusal(self, error: ServiceError) -> Response:
        """A line of text."""
        if isinstance(error, TooLargeError):
            error = TooLargeError(error.detail, SMALLER)
        return plain.of(error)

    async def _owner(self, proof: Token) -> UserRecord | None:
        accounts, now = self._context.store.accounts, self._context.clock()
        found = await run_in_threadpool(tokens.bearer, accounts, proof.token, now)
        return None if found is None else found[0]

    async def _named(self, proof: Password) -> UserRecord | None:
        if proof.password.startswith(tokens.PREFIX):
            user = await self._owner(Token(proof.password))
            return user if user is not None and user.name == proof.name else None
        stored = None
        if re.fullmatch(USER_NAME, proof.name):
            stored = await run_in_threadpool(self._context.store.accounts.password, proof.name)
        if not self._verifier.remembers(proof.name, proof.password, stored, time.monotonic()):
            if self._slowly.statistics().tasks_waiting >= WAITING:
                raise UnavailableError("too many log on at once", "try again in a moment")
            arguments = (proof.name, proof.password, stored, time.monotonic())
            if not await run_sync(self._verifier.verify, *arguments, limiter=self._slowly):
                return None
        return await run_in_threadpool(self._context.store.accounts.user, proof.name)
