"""Environment variables that EDT sets in the processes of a job: a value of the user's would be lost."""

import re

WORKER_TOKEN = "EDT_WORKER_TOKEN"
"""A worker's secret for its launcher; EDT_TOKEN is the user's, for the service."""

_OF_LAUNCHERS = re.compile(
    r"EDT_(COORDINATOR|WORKER_TOKEN|WORKER|SLOT|DEVICE|MIN_NP|MAX_NP|JOB|RUN|RUN_FILE|JOB_ENVIRONMENT|PORT_RANGE)"
    r"|EDT_(INVITATION|CHECKPOINTS_BROUGHT)"
    r"|EDT_(LOGS|CHECKPOINT_(DIR|INTERVAL|KEEP)|[A-Z]+_LAUNCHER)"
    r"|HOROVOD_((LOCAL_|CROSS_)?(RANK|SIZE)|HOSTNAME|ELASTIC|CONTROLLER|CPU_OPERATIONS)"
    r"|HOROVOD_(RENDEZVOUS_TOKEN|GLOO_(RENDEZVOUS|IFACE).*)"
    r"|OMPI_(COMM_WORLD|UNIVERSE|APP_CTX|FILE_LOCATION|FIRST_RANKS|COMMAND|ARGV|NUM_APP_CTX).*"
    r"|(PMI|PMIX|PRTE)_(?!MCA_).*"
)
_OF_THE_SERVICE = re.compile(
    r"EDT_(JOB_ID|JOB_NAME|MODEL_DIR|ARRAY_INDEX)|PYTHONIOENCODING|PWD|CUDA_VISIBLE_DEVICES"
)


def is_of_launcher(name: str) -> bool:
    """Whether a launcher, perhaps another job's or MPI's, tells its workers something by this variable."""
    return _OF_LAUNCHERS.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Whether a job's user cannot choose the value of this variable."""
    return is_of_launcher(name) or _OF_THE_SERVICE.fullmatch(name) is not None
