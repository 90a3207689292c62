"""What endpoints ask for: the service's parts, and the user of the request."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, cast

import structlog
from fastapi import BackgroundTasks, Depends, Path, Query, Request

from edt_launch.cluster.allocation import HOST
from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import ForbiddenError
from edt_launch.service.experiments.searches.service import Deletion
from edt_launch.service.names import ROOT
from edt_launch.service.names import USER as USER_NAME

log = structlog.get_logger()

USER, TOKEN = "edt_user", "edt_token"
"""Where in a request's scope the middleware has put who asks, and the token that proves it."""


SUBJECT = "edt_subject"
"""Where in a request's scope an endpoint puts what it changes, if the path does not say that.

None: it has only said what would change.
"""


async def _previewed(request: Request, dry_run: Annotated[bool, Query()] = False) -> None:
    if dry_run:
        request.scope[SUBJECT] = None


PREVIEWED = Depends(_previewed)
"""For endpoints that only say what they would change when they are asked with `dry_run`."""


async def _subject(request: Request) -> Callable[[str], None]:
    return lambda text: request.scope.update({SUBJECT: text})


SubjectDep = Annotated[Callable[[str], None], Depends(_subject)]
"""Is given what a request changes, if its path does not say that."""


def carry_out(deletions: Iterable[Deletion], afterwards: BackgroundTasks) -> None:
    """Have deletions carried out after the answer; one that fails costs the others nothing."""
    for deletion in deletions:
        afterwards.add_task(_guarded, deletion)


def _guarded(deletion: Deletion) -> None:
    try:
        deletion()
    except Exception as error:  # there is nobody left to whom it could be told
        log.error("files could not be deleted", exc_info=error)


async def _context(request: Request) -> Context:
    return cast("Context", request.app.state.context)


async def _user(request: Request) -> UserRecord:
    return cast("UserRecord", request.scope[USER])


async def _token(request: Request) -> TokenRecord:
    return cast("TokenRecord", request.scope[TOKEN])


async def admin(request: Request) -> UserRecord:
    """Who asks; others than administrators are refused."""
    user = await _user(request)
    if not user.is_admin:
        raise ForbiddenError(f"{user.name} is no administrator", "ask one")
    return user


ContextDep = Annotated[Context, Depends(_context)]
"""The service's parts."""

CurrentUser = Annotated[UserRecord, Depends(_user)]
"""Who asks."""

CurrentToken = Annotated[TokenRecord, Depends(_token)]
"""The token that proves who asks, below `/api/v1`."""

CurrentAdmin = Annotated[UserRecord, Depends(admin)]
"""Who asks; others than administrators are refused."""

MAX_PAGE_SIZE = 100
"""Items of one page of a list."""


def page_of(what: str) -> Any:
    """Which part of a list a request asks for: `Annotated[PageQuery, page_of("Projects")]`."""

    async def query(
        limit: Annotated[
            int, Query(ge=1, le=MAX_PAGE_SIZE, description=f"{what} of a page.")
        ] = MAX_PAGE_SIZE,
        after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
        newest: Annotated[bool, Query(description="The newest first.")] = False,
    ) -> PageQuery:
        return PageQuery(limit, after, newest)

    return Depends(query)


HostName = Annotated[str, Path(max_length=255, pattern=f"^{HOST}$", description="Name of a host.")]


NodeName = Annotated[
    str, Path(pattern=f"^({USER_NAME}|{ROOT})$", description=f"Name of a node; `{ROOT}` is the root.")
]
