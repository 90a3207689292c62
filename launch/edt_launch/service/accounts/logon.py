"""Logging on with a name and a password, at a bounded rate."""

import math
import re
import time
from functools import partial

import structlog
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.lockout import Lockout
from edt_launch.service.accounts.passwords import Verifier
from edt_launch.service.app.context import Context
from edt_launch.service.app.fair_threads import FairThreads
from edt_launch.service.errors import LockedError, UnauthorizedError
from edt_launch.service.names import USER

log = structlog.get_logger()

AT_ONCE = 2
"""Passwords that are verified at a time: each takes 64 MB, and other requests are not to wait for them."""

WAITING = 20
"""Attempts for one user from one address that may wait for that."""


class PasswordLogon:
    """Verifies passwords, one at a time for a user and an address, and makes wrong ones cost time."""

    def __init__(self, context: Context) -> None:
        self._accounts = context.store.accounts
        self._verifier = Verifier()
        self._lockout = Lockout()
        self._slowly = FairThreads(AT_ONCE, WAITING)

    async def check(self, name: str, password: str, address: str) -> str:
        """The hash of the user's password, if it is this one.

        Raises:
            LockedError: the last attempts were wrong, and it is too early for another one.
            UnauthorizedError: there is no such user, or they have another password, or none.
            UnavailableError: too many attempts wait.
        """
        is_name = re.fullmatch(USER, name) is not None
        stored = await run_in_threadpool(self._accounts.password, name) if is_name else None
        who = name[:64], address
        return await self._slowly.run(who, partial(self._checked, name, password, stored, who))

    def _checked(self, name: str, password: str, stored: str | None, who: tuple[str, str]) -> str:
        now = time.monotonic()
        if (wait := self._lockout.wait(who, now)) > 0:
            raise LockedError(
                f"too many wrong passwords: locked for {math.ceil(wait)} s", "wait, then try again"
            )
        if self._verifier.verify(name, password, stored, now) and stored is not None:
            self._lockout.succeeded(who)
            return stored
        self._lockout.failed(who, time.monotonic())
        log.warning("a logon has failed", user=who[0], address=who[1])
        raise UnauthorizedError("the name or the password is unknown", "check both, or use a token")
