"""The command line of horovodrun, as one would write it by hand."""

import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from edt_launch.cluster.allocation import Allocation
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.transports.ssh import SshOptions

HOROVODRUN, DISCOVER = (str(Path(sys.executable).with_name(name)) for name in ("horovodrun", "edt-discover"))
"""The commands that a job needs, whatever PATH it has."""


def command(program: Sequence[str], plan: Plan, first: Allocation, interface: str) -> list[str]:
    """The command line, given the allocation at the start and the interface over which workers talk."""
    paths, options = plan.paths, plan.options
    discovery = shlex.join([DISCOVER, "--note", str(paths.discovered), str(paths.allocation)])
    low, high = str(plan.limits.min_np), str(plan.limits.max_np)
    words = ["-np", low, "--min-np", low, "--max-np", high]  # it waits for -np slots, and then takes all
    words += ["--host-discovery-script", discovery, "--network-interface", interface]
    words += ["--elastic-timeout", str(max(1, math.ceil(options.start_timeout)))]  # it takes 0 for none
    ssh = options.of(SshOptions)
    if ssh.ssh_port is not None:
        words += ["--ssh-port", str(ssh.ssh_port)]
    if ssh.ssh_identity_file is not None:
        # Horovod puts it into a shell command as it is.
        words += ["--ssh-identity-file", shlex.quote(str(ssh.ssh_identity_file.absolute()))]
    if plan.follow is not None or any(host.devices for host in first.hosts):  # a file may bind devices later
        program = [DISCOVER, str(paths.allocation), "--exec", *program]
    return [HOROVODRUN, *words, *program]
