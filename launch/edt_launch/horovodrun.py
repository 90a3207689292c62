"""Horovod's command line with our driver in place of its own: ``python -m edt_launch.horovodrun ARGS``.

Everything else is Horovod's: options, host discovery by script, remote shells, the process that watches
over each worker, prefixed output. What is replaced, and why:

- `ElasticDriver`: it loses changes that come early or twice within a second, suspends whole hosts, starts
  newcomers while everybody waits, and takes any exit 0 for the end of the job.
- `create_slot_env_vars`: our workers need a few variables more.
"""

import functools
import logging
import os
import shlex
import sys
from typing import Any

from horovod.runner import gloo_run, launch
from horovod.runner.util import network

from edt_launch.driver import Driver, WorkerSlotInfo
from edt_launch.errors import EdtLaunchError

_horovod_variables = gloo_run.create_slot_env_vars


def _slot_variables(slot: WorkerSlotInfo) -> dict[str, str]:
    variables: dict[str, str] = _horovod_variables(slot)
    return variables | {name: shlex.quote(value) for name, value in slot.variables.items()}


def _make_driver(
    address: str,
    visible_devices: str | None,
    rendezvous: Any,
    discovery: Any,
    min_np: int,
    max_np: int,
    *,
    timeout: float | None,
    **_: Any,
) -> Driver:
    return Driver(address, discovery, min_np, max_np, timeout, visible_devices)


def main() -> int:
    """Run horovodrun with these arguments; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    args = launch.parse_args()
    # Horovod puts the whole environment behind a worker's own variables: what each worker has a value of its
    # own for must not be in it.
    visible_devices = os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if not args.nics or not args.host_discovery_script:
        print(
            "edt_launch.horovodrun: --network-interface and --host-discovery-script are required",
            file=sys.stderr,
        )
        return 2
    gloo_run.ElasticDriver = functools.partial(
        _make_driver, network.get_driver_ip(args.nics), visible_devices
    )
    gloo_run.create_slot_env_vars = _slot_variables
    try:
        launch._run(args)
    except EdtLaunchError as error:
        print(f"horovodrun: {error}", file=sys.stderr)
        return 3
    return 0 if Driver.outcome is not None and Driver.outcome.succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
