"""What the service refuses, and what to do then.

::

    ServiceError                a status of HTTP, a title, what is wrong, and the next step
    ├── InvalidError            422  the request makes no sense
    │   └── ArchiveError        422  the archive of code is broken, or contains what it must not
    ├── UnauthorizedError       401  no token, or one that opens nothing
    ├── ForbiddenError          403  the user may not do that
    ├── NotFoundError           404  there is no such thing
    ├── ConflictError           409  it does not fit what is there
    ├── TooLargeError           413  larger than a limit
    └── UnavailableError        503  the service cannot do it just now
"""

from typing import ClassVar


class ServiceError(Exception):
    """The root of what the service tells its users.

    Args:
        detail: what is wrong: the value, the limit.
        next_step: what to do.
    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "a mistake in the service"

    def __init__(self, detail: str, next_step: str = "") -> None:
        super().__init__(detail)
        self.detail, self.next_step = detail, next_step


class InvalidError(ServiceError):
    """The request makes no sense."""

    status = 422
    title = "the request makes no sense"


class ArchiveError(InvalidError):
    """The archive of code is broken, or contains what it must not."""

    title = "the archive cannot be used"


class UnauthorizedError(ServiceError):
    """No token, or one that opens nothing."""

    status = 401
    title = "who are you?"


class ForbiddenError(ServiceError):
    """The user may not do that."""

    status = 403
    title = "not allowed"


class NotFoundError(ServiceError):
    """There is no such thing."""

    status = 404
    title = "not found"


class ConflictError(ServiceError):
    """It does not fit what is there."""

    status = 409
    title = "not now"


class TooLargeError(ServiceError):
    """Larger than a limit."""

    status = 413
    title = "too large"


class UnavailableError(ServiceError):
    """The service cannot do it just now."""

    status = 503
    title = "not available just now"
