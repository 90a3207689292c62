"""The command line and the environment that horovodrun is started with."""

import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edt_launch.hosts.follower import Limits
from edt_launch.run_dir import RunDir

HOROVODRUN = (sys.executable, "-m", "edt_launch.launcher.horovodrun")
"""Horovod's command line with our driver."""

JOB_VARIABLE = "EDT_JOB"
"""Marks every process of a job, so that one that left its parents is found, too."""

# What another job's launcher tells its workers. Horovod puts the environment behind a worker's own
# variables, so a stale one would win.
_STALE = re.compile(
    r"EDT_(COORDINATOR|TOKEN|WORKER|SLOT|DEVICE|MIN_NP|MAX_NP|LOCAL_NP|(HANG|READY)_TIMEOUT|ALLOCATION|EVENTS_FD|JOB)"
    r"|EDT_(LOGS|FIRST_WORKER|CHECKPOINT_(DIR|INTERVAL|KEEP)|FRAMEWORK|WMLA_LAUNCHER)"
    r"|HOROVOD_((LOCAL_|CROSS_)?(RANK|SIZE)|HOSTNAME|ELASTIC|CONTROLLER|CPU_OPERATIONS|GLOO_(RENDEZVOUS|IFACE).*)"
    r"|OMPI_(COMM_WORLD|UNIVERSE|APP_CTX|FILE_LOCATION|FIRST_RANKS|COMMAND|ARGV|NUM_APP_CTX).*"
    r"|(PMI|PMIX|PRTE)_(?!MCA_).*"
)
HASH_SEED = "PYTHONHASHSEED"
"""In what order sets of strings are: the same in all processes of a job, which may split data by it."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Remote:
    """How hosts are reached over ssh; None leaves it to ssh's own configuration."""

    port: int | None = None
    identity_file: Path | None = None


def command(
    program: Sequence[str],
    limits: Limits,
    interface: str,
    paths: RunDir,
    start_timeout: float,
    remote: Remote,
    horovodrun: Sequence[str] = HOROVODRUN,
) -> list[str]:
    """The command line of horovodrun.

    Args:
        program: what each worker runs.
        limits: bounds on the number of workers.
        interface: network interface over which they talk.
        paths: the job's paths; the discovery script is there.
        start_timeout: seconds to wait for enough slots.
        remote: ssh's options.
        horovodrun: the command that is horovodrun.
    """
    low, high = str(limits.min_np), str(limits.max_np)
    options = ["--host-discovery-script", str(paths.discovery_script)]
    options += ["-np", low, "--min-np", low, "--max-np", high, "--network-interface", interface]
    options += ["--elastic-timeout", str(math.ceil(start_timeout))]
    if remote.port is not None:
        options += ["--ssh-port", str(remote.port)]
    if remote.identity_file is not None:
        # Horovod puts it into a shell command as it is.
        options += ["--ssh-identity-file", shlex.quote(str(remote.identity_file.absolute()))]
    return [*horovodrun, *options, "--", *program]


def environment(
    inherited: Mapping[str, str],
    paths: RunDir,
    first_worker: int = 0,
    checkpoint_interval: float | None = None,
    keep_checkpoints: int | None = None,
    hang_timeout: float | None = None,
    ready_timeout: float | None = None,
    checkpoints: Path | None = None,
) -> dict[str, str]:
    """The environment of horovodrun, which it hands on to the workers.

    Args:
        inherited: our own. What another job's launcher has put there does not pass, nor do names that a
            shell cannot assign to, because Horovod builds shell commands of them.
        paths: the job's paths.
        first_worker: serial number of its first worker.
        checkpoint_interval: seconds between two checkpoints at least; None for the default.
        keep_checkpoints: how many are kept; None for the default.
        hang_timeout: see `edt_launch.launcher.watchdog.Watch`.
        ready_timeout: see `edt_launch.membership.members.Limits`.
        checkpoints: the folder of its checkpoints; None for that of the output directory.
    """
    passed = {k: v for k, v in inherited.items() if _NAME.fullmatch(k) and not _STALE.fullmatch(k)}
    settings = {"INTERVAL": checkpoint_interval, "KEEP": keep_checkpoints}
    given = {f"EDT_CHECKPOINT_{name}": str(value) for name, value in settings.items() if value is not None}
    return {
        **passed,
        HASH_SEED: passed.get(HASH_SEED) or "0",
        **given,
        "EDT_ALLOCATION": str(paths.allocation),
        "EDT_CHECKPOINT_DIR": str(checkpoints or paths.checkpoint),
        "EDT_FIRST_WORKER": str(first_worker),
        "EDT_HANG_TIMEOUT": "" if hang_timeout is None else f"{hang_timeout:g}",
        "EDT_READY_TIMEOUT": "" if ready_timeout is None else f"{ready_timeout:g}",
        "PYTHONIOENCODING": "utf-8:backslashreplace",  # Horovod reads the workers' output as UTF-8, strictly
        "EDT_LOGS": str(paths.log),
    }
