"""What a service leaves that is killed while it takes a submission in: names of which no job is known."""

from edt_launch.adapters.wmla.running.environment import DRIVER_VARIABLE
from edt_launch.service.database.store import Store


def settle(store: Store) -> None:
    """Give names without a job to the one that was made for them, or up; while nothing is being taken in."""
    reserved = store.execs.reserved()
    if not reserved:
        return
    jobs = {job.environment.get(DRIVER_VARIABLE): job.id for job in store.jobs.page(limit=None).jobs}
    for names in reserved:
        if names.driver in jobs:
            store.execs.assign(names.number, jobs[names.driver])
        else:
            store.execs.release(names.number)
