"""What a job's launcher is started with: command line, variables, account."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edt_launch.core.run_options import RunOptions, ViewKind
from edt_launch.core.system import environments
from edt_launch.core.system.accounts import Account
from edt_launch.launcher.programs import kinds
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.records import JobRecord

OURS = ("EDT_", "PG")
"""How variables begin that are not for jobs: our settings, and those of PostgreSQL's client."""

JOB_UMASK = 0o022
"""Of jobs that run under accounts of their own."""


def under(account: Account | None) -> dict[str, Any]:
    """How a process is started under an account."""
    if account is None:
        return {}
    groups = list(account.groups)
    return {"user": account.uid, "group": account.gid, "extra_groups": groups, "umask": JOB_UMASK}


def environment(
    inherited: Mapping[str, str], record: JobRecord, paths: JobDir
) -> tuple[dict[str, str], dict[str, str]]:
    """The environment of `edt-launch` and its agents, and that of the job's program.

    Both are ours without our settings and secrets, with where things are; the program's has the user's
    variables, too. The user's PATH comes before ours.
    """
    passed = {name: value for name, value in inherited.items() if not name.startswith(OURS)}
    here = {"EDT_JOB_ID": record.id, "EDT_JOB_NAME": record.name, "EDT_MODEL_DIR": str(paths.train)}
    if record.data_dir is not None:
        here["DATA_DIR"] = record.data_dir
    if record.array_index is not None:
        here["EDT_ARRAY_INDEX"] = str(record.array_index)
    own = {**passed, "PATH": environments.search_path(passed, {}), **here}
    its_path = environments.search_path(passed, record.environment)
    return own, {**passed, **record.environment, "PATH": its_path, **here}


def arguments(record: JobRecord, paths: JobDir, horovodrun: bool, common: RunOptions) -> list[str]:
    """The arguments of `edt-launch` for a job; `common` is what all jobs have."""
    options = replace(
        common,
        min_np=record.min,
        max_np=record.max,
        allocation=paths.allocation,
        output_dir=paths.root,
        max_restarts=record.max_restarts,
        grace=record.grace,
        warm_start=record.warm_start,
        checkpoint_interval=record.checkpoint_interval,
        view=ViewKind.PLAIN,
    )
    kind = kinds.named(record.framework or ("horovodrun" if horovodrun else "script"))
    return kind.command_line(options, record.framework, record.command)
