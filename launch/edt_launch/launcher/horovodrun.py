"""Horovod's command line with our driver for its own: ``python -m edt_launch.launcher.horovodrun ARGS``.

Everything else is Horovod's: options, host discovery by script, remote shells, the process that watches
over each worker, prefixed output. What is replaced, and why:

- `ElasticDriver`: it loses changes that come early or twice within a second, suspends whole hosts, starts
  newcomers while everybody waits, and takes any exit 0 for the end of the job.
- `create_slot_env_vars`: our workers need a few variables more.
- `prefix_connection` and the threads that it runs in: see `edt_launch.launcher.forwarding`.
"""

import logging
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

# Horovod watches over each worker from a Python process that imports this module first: it has to be light.
if TYPE_CHECKING:
    from edt_launch.launcher.driver import WorkerSlotInfo


def main() -> int:
    """Run horovodrun with these arguments; returns the exit code."""
    from horovod.runner import gloo_run, launch
    from horovod.runner.common.util import safe_shell_exec
    from horovod.runner.util import network

    from edt_launch.errors import EdtLaunchError
    from edt_launch.launcher.driver import Driver
    from edt_launch.launcher.forwarding import Forwarder, in_thread
    from edt_launch.wmla.running.workers import Workers

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    args = launch.parse_args()
    if not args.nics or not args.host_discovery_script:
        missing = "--network-interface" if not args.nics else "--host-discovery-script"
        print(
            f"edt_launch.launcher.horovodrun: {missing} is required; start jobs with edt-launch",
            file=sys.stderr,
        )
        return 2
    args.command = args.command[args.command[:1] == ["--"] :]  # it ends Horovod's own options
    # Horovod puts the whole environment behind a worker's own variables: what each worker has a value of its
    # own for must not be in it.
    visible_devices = os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    address = network.get_driver_ip(args.nics)
    wmla = Workers.of(os.environ, address)
    horovods_variables = gloo_run.create_slot_env_vars

    drivers: list[Driver] = []

    def make_driver(
        rendezvous: Any, discovery: Any, min_np: int, max_np: int, *, timeout: float | None, **_: Any
    ) -> Driver:
        drivers.append(Driver(address, discovery, min_np, max_np, timeout, visible_devices, wmla))
        return drivers[-1]

    def slot_variables(slot: "WorkerSlotInfo") -> dict[str, str]:
        own = {name: shlex.quote(value) for name, value in slot.variables.items()}
        return {**horovods_variables(slot), **own}

    safe_shell_exec.prefix_connection = Forwarder(None if wmla is None else wmla.printed)
    safe_shell_exec.in_thread = in_thread
    gloo_run.ElasticDriver = make_driver
    gloo_run.create_slot_env_vars = slot_variables
    try:
        launch._run(args)
    except EdtLaunchError as error:
        print(f"horovodrun: {error}", file=sys.stderr)
        return 3
    return 0 if drivers and drivers[-1].succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
