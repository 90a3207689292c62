"""What goes wrong again and again: told once, and once more when it is something else, or over."""

import errno
import logging

log = logging.getLogger(__name__)

PASSING = frozenset(
    {
        *(errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
        *(errno.EDQUOT, errno.EIO, errno.ENOSPC, errno.ESTALE),
    }
)
"""What the machine runs out of, and has again later."""


def is_passing(error: BaseException) -> bool:
    """Whether it is the machine's trouble, and no job's."""
    return isinstance(error, OSError) and error.errno in PASSING


class Troubles:
    """What is wrong with what, as far as it has been logged."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def tell(self, what: str, error: BaseException, has_trace: bool = False) -> None:
        """Something cannot be done, and is tried again; `has_trace`: where it went wrong is logged, too."""
        text = str(error).partition("\n")[0]  # SQLAlchemy adds the statement
        if self._told.get(what) != text:
            self._told[what] = text
            log.warning("%s, it is tried again: %s", what, text, exc_info=error if has_trace else None)

    def over(self, what: str) -> None:
        """It can be done."""
        if self._told.pop(what, None) is not None:
            log.info("%s: it is well again", what)
