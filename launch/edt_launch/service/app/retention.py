"""Forgetting jobs that ended long ago, with their files and their history, a few at a time."""

import structlog

from edt_launch.service.app.context import Context
from edt_launch.service.experiments import runs
from edt_launch.service.jobs.submission import remove_files

log = structlog.get_logger()

INTERVAL = 60.0
"""Seconds between two portions."""

JOBS, CHANGES = 20, 500
"""Jobs, and changes of allocations, that are forgotten at a time."""

DAY = 86400.0


def prune(context: Context) -> None:
    """Forget jobs as the setting `retention` says, but none that has not ended or that a search still reads.

    The history of jobs that are not there any more is forgotten, too.
    """
    days = context.settings.retention
    if days == 0:
        return
    before = context.clock() - days * DAY
    for job in context.store.jobs.ended_before(before, JOBS):
        runs.keep(context, job)
        if context.store.jobs.delete(job):
            log.info("a job is deleted", job=job, reason=f"it ended more than {days:g} days ago")
            remove_files(context.home, job)()
            context.changed()
    context.store.history.prune(before, CHANGES)
