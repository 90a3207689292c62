"""The environment of a job's workers."""

import re
from collections.abc import Mapping

from edt_launch.core.command_line import variables
from edt_launch.launcher.plan import Plan

# What another job's launcher tells its workers, or another launcher altogether.
_STALE = re.compile(
    r"EDT_(COORDINATOR|TOKEN|WORKER|SLOT|DEVICE|MIN_NP|MAX_NP|JOB|RUN|RUN_FILE)"
    r"|EDT_(LOGS|CHECKPOINT_(DIR|INTERVAL|KEEP)|[A-Z]+_LAUNCHER)"
    r"|HOROVOD_((LOCAL_|CROSS_)?(RANK|SIZE)|HOSTNAME|ELASTIC|CONTROLLER|CPU_OPERATIONS)"
    r"|HOROVOD_(RENDEZVOUS_TOKEN|GLOO_(RENDEZVOUS|IFACE).*)"
    r"|OMPI_(COMM_WORLD|UNIVERSE|APP_CTX|FILE_LOCATION|FIRST_RANKS|COMMAND|ARGV|NUM_APP_CTX).*"
    r"|(PMI|PMIX|PRTE)_(?!MCA_).*"
)
HASH_SEED = "PYTHONHASHSEED"
"""In what order sets of strings are: the same in all processes of a job, which may split data by it."""


def environment(inherited: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """The variables that all workers of a job have. What another job's launcher has left does not pass."""
    passed = {name: value for name, value in inherited.items() if not _STALE.fullmatch(name)}
    return {
        **passed,
        HASH_SEED: passed.get(HASH_SEED) or "0",
        # As torchrun does. Sums are grouped by threads, so a number that follows from the job's size would
        # make a worker's bits depend on it.
        "OMP_NUM_THREADS": passed.get("OMP_NUM_THREADS") or "1",
        **variables(plan.options),
        "EDT_CHECKPOINT_DIR": str(plan.checkpoints),
        "EDT_LOGS": str(plan.paths.log),
        "PYTHONIOENCODING": "utf-8:backslashreplace",  # lines of the logs are UTF-8
        "PYTHONUNBUFFERED": "1",
    }
