"""The environment of a job's workers."""

from collections.abc import Mapping

from edt_launch.core.command_line import variables
from edt_launch.core.run_options import PortOptions
from edt_launch.core.system.reserved_variables import is_of_launcher
from edt_launch.launcher.plan import Plan

HASH_SEED = "PYTHONHASHSEED"
"""In what order sets of strings are: the same in all processes of a job, which may split data by it."""


def environment(inherited: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """The variables that all workers of a job have. What another job's launcher has left does not pass."""
    passed = {name: value for name, value in inherited.items() if not is_of_launcher(name)}
    return {
        **passed,
        HASH_SEED: passed.get(HASH_SEED) or "0",
        # As torchrun does. Sums are grouped by threads, so a number that follows from the job's size would
        # make a worker's bits depend on it.
        "OMP_NUM_THREADS": passed.get("OMP_NUM_THREADS") or "1",
        **variables(plan.options),
        **variables(plan.options.of(PortOptions)),
        "EDT_CHECKPOINT_DIR": str(plan.checkpoints),
        "EDT_LOGS": str(plan.paths.log),
        "PYTHONIOENCODING": "utf-8:backslashreplace",  # lines of the logs are UTF-8
        "PYTHONUNBUFFERED": "1",
    }
