"""A database and the folder of its jobs belong together: with another folder, a service would take all
running jobs for lost, and start them a second time.

Both keep the same random name. The database knows the folder's path besides: running jobs have its files open
there.
"""

import re
import secrets

from edt_launch.core.files.atomic import write_atomically
from edt_launch.service.app.home import JOB_ID, Home
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.states import HAS_LAUNCHER

KEY = "home"
"""Where the database keeps the folder's name and path."""


class ForeignError(Exception):
    """The database is of another folder; the message says which, and what to do."""


def bind(store: Store, home: Home) -> bool:
    """Make a new database and folder belong together. Returns whether they did before.

    Raises:
        ForeignError: one of them belongs to another.
    """
    path, known = str(home.root), store.memory.get(KEY)
    ours = home.identity.read_text().strip() if home.identity.is_file() else None
    if known is None:
        if ours is not None and any(re.fullmatch(JOB_ID, job.name) for job in home.jobs.iterdir()):
            raise ForeignError(
                f"the jobs in {home.jobs} are those of another database; name that one with --database, or "
                f"move {home.jobs} away"
            )
        ours = ours or secrets.token_hex(8)
        write_atomically(home.identity, f"{ours}\n")
        store.memory.set(KEY, {"id": ours, "path": path})
        return False
    if known["id"] != ours:
        raise ForeignError(
            f"the database's jobs are in {known['path']}; start the service with --home {known['path']}, "
            "or name another --database"
        )
    if known["path"] != path:
        running = [job.id for job in store.jobs.live() if job.state in HAS_LAUNCHER]
        if running:
            raise ForeignError(
                f"the folder was {known['path']} when {', '.join(running[:5])} began to run; move it back, "
                "and pause or stop them before you move it"
            )
        store.memory.set(KEY, {"id": ours, "path": path})
    return True
