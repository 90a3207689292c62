"""What is done when the answer has been sent: deleting files, which may take a while."""

from collections.abc import Iterable

import structlog
from fastapi import BackgroundTasks

from edt_launch.service.experiments import Deletion

log = structlog.get_logger()


def carry_out(deletions: Iterable[Deletion], afterwards: BackgroundTasks) -> None:
    """Have deletions carried out after the answer; one that fails costs the others nothing."""
    for deletion in deletions:
        afterwards.add_task(_guarded, deletion)


def _guarded(deletion: Deletion) -> None:
    """There is nobody left to whom a failure could be told."""
    try:
        deletion()
    except Exception as error:
        log.error("files could not be deleted", exc_info=error)
