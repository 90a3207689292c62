"""What the service refuses, and what to do then.

::

    ServiceError                500
    ├── InvalidError            422
    │   └── ArchiveError        422
    ├── UnauthorizedError       401
    ├── ForbiddenError          403
    ├── NotFoundError           404
    │   └── GoneError           410
    ├── ConflictError           409
    ├── TooLargeError           413
    ├── LockedError             429
    └── UnavailableError        503
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

    @property
    def message(self) -> str:
        """What is wrong and what to do, for people: without advice about the interface of programs."""
        step = "" if self.next_step.startswith("GET ") else self.next_step
        return f"{self.detail}: {step}" if step else self.detail

    def __init_subclass__(cls, status: int | None = None, title: str | None = None) -> None:
        cls.status, cls.title = status or cls.status, title or cls.title


class InvalidError(ServiceError, status=422, title="invalid request"):
    """The request makes no sense."""


class ArchiveError(InvalidError, title="the archive cannot be used"):
    """The archive of code is broken, or contains what it must not."""


class UnauthorizedError(ServiceError, status=401, title="Unauthorized"):
    """No token, or one that opens nothing."""


class ForbiddenError(ServiceError, status=403, title="not allowed"):
    """The user may not do that."""


class NotFoundError(ServiceError, status=404, title="not found"):
    """There is no such thing."""


class GoneError(NotFoundError, status=410, title="gone"):
    """There was such a thing, and it has been deleted."""


class ConflictError(ServiceError, status=409, title="conflict"):
    """It does not fit what is there."""


class TooLargeError(ServiceError, status=413, title="too large"):
    """Larger than a limit."""


class LockedError(ServiceError, status=429, title="too many attempts"):
    """Too many wrong passwords."""


class SlowRequestError(ServiceError, status=408, title="too slow"):
    """The body of a request does not arrive in time."""


class UnavailableError(ServiceError, status=503, title="not available just now"):
    """The service cannot do it just now."""
