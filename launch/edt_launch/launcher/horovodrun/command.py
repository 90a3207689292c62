"""The command line of horovodrun, as one would write it by hand."""

import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from edt_launch.cluster.allocation import Allocation
from edt_launch.cluster.follower import Limits
from edt_launch.core.run_options import RunOptions

HOROVODRUN, DISCOVER = (str(Path(sys.executable).with_name(name)) for name in ("horovodrun", "edt-discover"))
"""The commands that a job needs, whatever PATH it has."""


def command(
    program: Sequence[str],
    file: Path,
    first: Allocation,
    changes: bool,
    limits: Limits,
    interface: str,
    options: RunOptions,
    note: Path,
) -> list[str]:
    """The command line.

    Args:
        program: what each worker runs.
        file: the allocation file.
        first: its content when the job starts.
        changes: whether it may change, and bind devices later.
        limits: bounds on the number of workers.
        interface: network interface over which the workers talk.
        options: those of edt-launch: ssh's, and the time to wait for enough slots.
        note: where the discovery script writes down which generation horovodrun has seen.
    """
    discovery = shlex.join([DISCOVER, "--note", str(note), str(file)])
    low, high = str(limits.min_np), str(limits.max_np)
    words = ["-np", low, "--min-np", low, "--max-np", high]  # it waits for -np slots, and then takes all
    words += ["--host-discovery-script", discovery, "--network-interface", interface]
    words += ["--elastic-timeout", str(max(1, math.ceil(options.start_timeout)))]  # it takes 0 for none
    if options.ssh_port is not None:
        words += ["--ssh-port", str(options.ssh_port)]
    if options.ssh_identity_file is not None:
        # Horovod puts it into a shell command as it is.
        words += ["--ssh-identity-file", shlex.quote(str(options.ssh_identity_file.absolute()))]
    if changes or any(host.devices for host in first.hosts):
        program = [DISCOVER, str(file), "--exec", *program]
    return [HOROVODRUN, *words, *program]
