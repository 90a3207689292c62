"""Logs failures that repeat: once each, again when the cause changes, and when they are over."""

import logging

log = logging.getLogger(__name__)


class ChangeLogger:
    """Logs only what has changed since it was logged last."""

    def __init__(self) -> None:
        self._logged: dict[str, str] = {}

    def failed(self, what: str, error: BaseException, has_trace: bool = False) -> None:
        """Something cannot be done, and is tried again; `has_trace`: where it went wrong is logged, too."""
        text = str(error).partition("\n")[0]  # SQLAlchemy adds the statement
        if self._logged.get(what) != text:
            self._logged[what] = text
            log.warning("%s failed and is tried again: %s", what, text, exc_info=error if has_trace else None)

    def recovered(self, what: str) -> None:
        """It can be done."""
        if self._logged.pop(what, None) is not None:
            log.info("%s works again", what)
