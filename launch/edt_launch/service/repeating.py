"""Doing something again and again, whether the database answers or not."""

import threading
from collections.abc import Callable

import structlog

from edt_launch.service.database.engine import AWAY
from edt_launch.service.database.sole_user import InUseError

log = structlog.get_logger()


def repeat(work: Callable[[], None], interval: float, stop: threading.Event) -> None:
    """Call `work` until `stop` is set, with `interval` seconds before each call.

    While the database does not answer, or a lost connection of ours still holds it, it is tried again; that
    is logged once.
    """
    is_away = False
    while not stop.wait(interval):
        try:
            work()
        except (*AWAY, InUseError) as error:
            if not is_away:
                log.warning("the database cannot be used, it is tried again", reason=str(error))
            is_away = True
        else:
            if is_away:
                log.info("the database can be used again")
            is_away = False
