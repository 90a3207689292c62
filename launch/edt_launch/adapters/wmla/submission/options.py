"""The options of dlicmd that may stand in a submission's argument string: as data.

What is not in this table belongs to the user's script.
"""

from collections.abc import Mapping
from enum import Enum


class Use(Enum):
    """What becomes of an option."""

    USED = "used"
    IGNORED = "ignored"
    REFUSED = "refused"


FLAGS = frozenset({"exclusive"})
"""Options without a value."""

USED = (
    *("exec-start", "model-main", "model-dir", "appName", "edt-options", "cs-datastore-meta", "data-source"),
    *("numWorker", "workerDeviceNum", "gpuPerWorker", "msd-env", "msd-priority", "debug-level"),
)
"""Those that decide something here."""

IGNORED = (
    *("consumer", "ig", "python-version", "query-args", "exclusive", "lsf-gpu-syntax", "numPs"),
    *("conda-env-name", "conda-home", "conda-yaml", "conda-package"),
    *("workerDeviceType", "workerMemory", "workerCPULimit", "workerMemoryLimit"),
    *("driverDeviceType", "driverDeviceNum", "driverMemory", "driverCPULimit", "driverMemoryLimit"),
    *("cs-rmq-meta", "cs-url-meta", "cs-url-bearer"),
    *("msd-attr", "msd-label", "msd-image-name", "msd-image-pull-secret", "msd-pull-secret"),
    *("msd-image-pull-policy", "msd-pull-policy", "msd-task0-node-selector", "msd-task12n-node-selector"),
    *("msd-pending-timeout", "msd-pack-id"),
    *("rest-host", "master-host", "rest-port", "dli-rest-port", "username", "password", "jwt-token"),
)
"""Those that clients may give and that mean nothing here: they are taken out of the script's arguments."""

REFUSED = ("user-cmd", "pbmodel-name", "pbmodel-cmd")
"""Those without which the job would be another one."""

OPTIONS: Mapping[str, Use] = {
    **dict.fromkeys(USED, Use.USED),
    **dict.fromkeys(IGNORED, Use.IGNORED),
    **dict.fromkeys(REFUSED, Use.REFUSED),
}

FAMILY = "msd-podaffinity-"
"""How a family of options begins whose members are ignored, too."""


def use_of(name: str) -> Use | None:
    """What becomes of an option, by its name without dashes; None if it is the script's."""
    return Use.IGNORED if name.startswith(FAMILY) else OPTIONS.get(name)
