"""Users, their tokens and what they have changed, as in `records`."""

from dataclasses import dataclass

from edt_launch.service.db.types import Str16, Str64, Str255


@dataclass(frozen=True)
class UserRecord:
    """Somebody with jobs of their own."""

    name: Str64
    is_admin: bool = False
    created: float = 0.0

    def may_act_for(self, name: str) -> bool:
        """Whether they may do what concerns the user of that name: as that user, or as an administrator."""
        return self.is_admin or self.name == name

    @property
    def confined_to(self) -> str | None:
        """The user whose things alone they see; None for administrators, who see those of all."""
        return None if self.is_admin else self.name


@dataclass(frozen=True)
class TokenRecord:
    """A token; only its hash is kept.

    Attributes:
        is_session: whether logging on gave it.
        parent: id of the token that it was made with; None if a password, or the service itself, gave it.
        idle_until: of a browser's session, when it ends if it is not used before; None for any other.
        is_once: whether it logs a browser on, once, and opens nothing else.
        scope: what it may do: "all", or "read".
        used: when it was last used, to a minute; None if it never was.
    """

    id: Str16
    hash: Str64
    user: Str64
    name: Str64
    created: float
    expires: float | None = None
    revoked: float | None = None
    is_session: bool = False
    parent: Str16 | None = None
    idle_until: float | None = None
    is_once: bool = False
    scope: Str16 = "all"
    used: float | None = None

    @property
    def is_browser(self) -> bool:
        """Whether it is the session of a browser."""
        return self.idle_until is not None

    def opens(self, now: float) -> bool:
        """Whether a browser, or else programs, get in with it as often as they like."""
        end = self.idle_until or self.expires
        return not self.is_once and (end is None or end > now)


@dataclass(frozen=True)
class AuditRecord:
    """Somebody has changed something: a request that was carried out, and what it was about, as its path."""

    time: float
    user: Str64
    method: Str16
    path: Str255
    number: int = 0
