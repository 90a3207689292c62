"""The environment of a job's workers."""

import re
from collections.abc import Mapping
from pathlib import Path

from edt_launch.core.run_dir import RunDir

# What another job's launcher tells its workers, or another launcher altogether.
_STALE = re.compile(
    r"EDT_(COORDINATOR|TOKEN|WORKER|SLOT|DEVICE|MIN_NP|MAX_NP|LOCAL_NP|JOB)"
    r"|EDT_(LOGS|CHECKPOINT_(DIR|INTERVAL|KEEP)|FRAMEWORK|WMLA_LAUNCHER)"
    r"|HOROVOD_((LOCAL_|CROSS_)?(RANK|SIZE)|HOSTNAME|ELASTIC|CONTROLLER|CPU_OPERATIONS|GLOO_(RENDEZVOUS|IFACE).*)"
    r"|OMPI_(COMM_WORLD|UNIVERSE|APP_CTX|FILE_LOCATION|FIRST_RANKS|COMMAND|ARGV|NUM_APP_CTX).*"
    r"|(PMI|PMIX|PRTE)_(?!MCA_).*"
)
HASH_SEED = "PYTHONHASHSEED"
"""In what order sets of strings are: the same in all processes of a job, which may split data by it."""


def environment(
    inherited: Mapping[str, str],
    paths: RunDir,
    checkpoint_interval: float | None = None,
    keep_checkpoints: int | None = None,
    checkpoints: Path | None = None,
) -> dict[str, str]:
    """The variables that all workers of a job have.

    Args:
        inherited: our own. What another job's launcher has put there does not pass.
        paths: the job's paths.
        checkpoint_interval: seconds between two checkpoints at least; None for the default.
        keep_checkpoints: how many are kept; None for the default.
        checkpoints: the folder of its checkpoints; None for that of the output directory.
    """
    passed = {name: value for name, value in inherited.items() if not _STALE.fullmatch(name)}
    settings = {"INTERVAL": checkpoint_interval, "KEEP": keep_checkpoints}
    given = {f"EDT_CHECKPOINT_{name}": str(value) for name, value in settings.items() if value is not None}
    return {
        **passed,
        HASH_SEED: passed.get(HASH_SEED) or "0",
        **given,
        "EDT_CHECKPOINT_DIR": str(checkpoints or paths.checkpoint),
        "EDT_LOGS": str(paths.log),
        "PYTHONIOENCODING": "utf-8:backslashreplace",  # lines of the logs are UTF-8
        "PYTHONUNBUFFERED": "1",
    }
