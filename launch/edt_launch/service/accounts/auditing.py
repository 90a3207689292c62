"""Writing down who has changed what: requests that were carried out, but for those that only read."""

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from edt_launch.service.accounts.records import AuditRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.engine import AWAY
from edt_launch.service.http.dependencies import SUBJECT, USER

log = structlog.get_logger()

CHANGES = frozenset({"DELETE", "PATCH", "POST", "PUT"})

OWN = frozenset({"/account/theme", "/logoff"})
"""Paths of what concerns the browser alone."""

MAX_SUBJECT_LENGTH = 255
"""Characters that are kept of a path."""


class Auditor:
    """Writes changes down; what cannot be written is in the log."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def note(self, scope: Scope, status: int) -> None:
        """Note the request of a scope, whose answer has this status."""
        if scope["method"] not in CHANGES or USER not in scope or status >= 400:
            return
        if scope["path"] in OWN or scope.get(SUBJECT, "") is None:
            return
        subject = f"{scope['path']} {scope.get(SUBJECT, '')}".strip()[:MAX_SUBJECT_LENGTH]
        change = AuditRecord(self._context.clock(), scope[USER].name, scope["method"], subject)
        try:
            await run_in_threadpool(self._context.store.audit.add, change)
        except AWAY as error:
            log.error("a change is not in the audit", user=change.user, path=subject, reason=str(error))
