"""How requests for pages are let in: by the cookie of a session, and changes from the service's own pages."""

import re
import shutil
from urllib.parse import quote

from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from edt_launch.service.accounts import sessions
from edt_launch.service.accounts.authenticator import is_identified
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ForbiddenError, ServiceError, UnauthorizedError
from edt_launch.service.experiments.spec import EXPERIMENT_ID
from edt_launch.service.http import problems
from edt_launch.service.http.sites import is_own_page
from edt_launch.service.web import templating

MAX_FORM_BYTES = 2**16
"""Bytes of a form."""

UPLOADS = re.compile(rf"/console/run|/experiments/new-search|/experiments/{EXPERIMENT_ID}/add")
"""The paths of forms that carry an archive."""

DATA = "/data/upload"
"""The path of the form that carries data."""

OPEN = ("/logon", "/favicon.ico")


class _LoggedOffError(UnauthorizedError):
    """Nobody is logged on; `goal` is where they wanted to go."""

    def __init__(self, goal: str, is_fragment: bool) -> None:
        super().__init__("you are not logged on", "log on")
        self.goal = goal
        self.is_fragment = is_fragment


class WebAuthenticator:
    """Implements `service.accounts.authenticator.Authenticator`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def withdrawals(self) -> int:
        """Grows with sessions that end."""
        return self._context.store.accounts.withdrawals

    def limit(self, scope: Scope) -> int:
        """Bytes that a form may have."""
        if scope["method"] == "POST" and scope["path"] == DATA:
            room = shutil.disk_usage(self._context.home.incoming).free  # where forms are kept meanwhile
            return min(self._context.settings.max_data, room) + MAX_FORM_BYTES
        is_upload = scope["method"] == "POST" and UPLOADS.fullmatch(scope["path"]) is not None
        return self._context.settings.max_upload + MAX_FORM_BYTES if is_upload else MAX_FORM_BYTES

    async def identify(self, scope: Scope) -> None:
        """Put who asks, and the session, into the scope; raises `UnavailableError`, too."""
        headers, path = Headers(scope=scope), scope["path"]
        if scope["method"] != "GET" and not is_own_page(headers):
            raise ForbiddenError(
                "the request does not come from a page of this service",
                "use its pages, or as a program its REST interface with a token",
            )
        if path in OPEN or path.startswith("/static/"):
            return
        token = sessions.token_of(headers, self._context.url)
        if token is None or not await is_identified(self._context, scope, sessions.resume, token):
            query = scope.get("query_string", b"").decode("latin-1")
            goal = f"{path}?{query}" if query else path
            raise _LoggedOffError(goal if scope["method"] == "GET" else "/", "hx-request" in headers)

    def refusal(self, error: ServiceError) -> Response:
        """The page to log on at, or what is wrong."""
        if isinstance(error, _LoggedOffError):
            address = f"/logon?next={quote(error.goal, safe='/')}"
            if error.is_fragment:  # a redirection would put that page into this one
                return Response(status_code=401, headers={"HX-Redirect": address})
            return RedirectResponse(address, 303)
        return problems.of(error, templating.error)
