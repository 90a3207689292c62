"""What ``--rdzv-endpoint`` and ``--rdzv-conf`` say: the file, the port, and the workers of a node."""

import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edt_launch.service.app.home import JOB_ID, Home

LAUNCHERS = {"torch.distributed.run", "torch.distributed.launch"}
PORTS = range(20000, 29000)
"""Ports of the stores that agents meet at, below those that systems hand out themselves."""


def allocation_path(endpoint: str, home: Home) -> Path:
    """The allocation file that an endpoint names: its path, or the id of a job of the service.

    Raises:
        ValueError: the endpoint is empty, or has the form of HOST:PORT.
    """
    if re.fullmatch(JOB_ID, endpoint):
        return home.job(endpoint).allocation
    path = Path(endpoint).expanduser().absolute()
    if not endpoint or (re.fullmatch(r"[^/]+:\d+", endpoint) and not path.exists()):
        raise ValueError(
            f"--rdzv-endpoint {endpoint!r}: expected an allocation file or the id of a job, as the nodes of "
            "--rdzv-backend edt are those of an allocation"
        )
    return path


def port_of(path: Path, run_id: str, config: Mapping[str, Any]) -> int:
    """The port of the store that agents meet at: `port` of --rdzv-conf, or one made of file and run id.

    Raises:
        ValueError: it is not the number of a port.
    """
    if "port" not in config:
        return PORTS[zlib.crc32(f"{path}\0{run_id}".encode()) % len(PORTS)]
    return _number("port", config["port"], 65535)


def workers_per_node(config: Mapping[str, Any]) -> int:
    """Workers of each node: `nproc` of --rdzv-conf, or --nproc-per-node where torchrun itself was started.

    Raises:
        ValueError: it is not a number, or another launcher was started and `nproc` is missing.
    """
    if "nproc" in config:
        return _number("nproc", config["nproc"], 2**16)
    spec = sys.modules["__main__"].__spec__
    if Path(sys.argv[0]).name != "torchrun" and (spec is None or spec.name not in LAUNCHERS):
        raise ValueError(
            "--rdzv-backend edt needs the number of workers of a node, and torchrun was not started by its "
            "name; add --rdzv-conf nproc=N, with N as in --nproc-per-node"
        )
    from torch.distributed.run import determine_local_world_size, parse_args

    return int(determine_local_world_size(parse_args(sys.argv[1:]).nproc_per_node))  # type: ignore[no-untyped-call]


def _number(name: str, value: object, largest: int) -> int:
    if not re.fullmatch("[1-9][0-9]{0,5}", text := str(value)) or int(text) > largest:
        raise ValueError(f"--rdzv-conf {name}={text}: expected a whole number from 1 to {largest}")
    return int(text)
