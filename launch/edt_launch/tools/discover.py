"""The command `edt-discover`: an allocation file as a host-discovery script for horovodrun prints it.

Horovod runs it about once a second, so nothing slow is imported. It prints `host:slots` lines; or an error,
with exit code 1, which changes nothing for a running job.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from edt_launch.cluster.allocation import Allocation, parse, read
from edt_launch.core.errors import AllocationError
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.system import standard_streams

UNUSABLE = 1
"""Exit code: the file is missing or makes no sense, or nobody reads what is printed."""


def device_variables(allocation: Allocation, environ: Mapping[str, str]) -> Mapping[str, str]:
    """What a worker that horovodrun has started has to know of its devices; empty where none are bound.

    All devices of its host are visible, in the order of the slots, so that the local rank chooses its own.
    Devices that the host is given later come behind them. A host that has lost its devices shows none.
    """
    here, slot = environ.get("HOROVOD_HOSTNAME"), environ.get("HOROVOD_LOCAL_RANK", "")
    devices = next((host.devices for host in allocation.hosts if host.host == here), None)
    if devices is None:
        return {"CUDA_VISIBLE_DEVICES": ""} if any(host.devices for host in allocation.hosts) else {}
    own = {"EDT_DEVICE": devices[int(slot)]} if slot.isdecimal() and int(slot) < len(devices) else {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(devices), **own}


def command(file: Path) -> int:
    """Print an allocation file as host:slots lines, as `edt-discover` does."""
    return main([str(file)])


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    standard_streams.ensure_open()
    parser = argparse.ArgumentParser(
        prog="edt-discover",
        description="Print an allocation file as host:slots lines, for horovodrun --host-discovery-script.",
        epilog="Exit codes: 0; 1 if the file is missing, half written or makes no sense; 2 for wrong usage.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the allocation file")
    parser.add_argument("--note", metavar="FILE", type=Path, help="write down which generation was printed")
    parser.add_argument(
        "--exec",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="instead, run COMMAND, a worker of horovodrun, with its host's devices of FILE in "
        "CUDA_VISIBLE_DEVICES",
    )
    options = parser.parse_args(words)
    if options.exec == []:
        parser.error("--exec: give the COMMAND that is to be run")
    try:
        allocation = parse(read(options.file))
    except OSError as error:
        return _fail(f"{options.file}: {error.strerror}; name the file that the allocator writes")
    except AllocationError as error:
        return _fail(f"{options.file}: {error}")
    if options.exec:
        environment = {**os.environ, **device_variables(allocation, os.environ)}
        try:
            os.execvpe(options.exec[0], options.exec, environment)
        except OSError as error:
            return _fail(f"{options.exec[0]}: {error.strerror}")
    try:
        sys.stdout.writelines(f"{host.host}:{host.slots}\n" for host in allocation.hosts if host.slots)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return _fail(f"standard output: {error.strerror}")
    if options.note is not None:
        try:
            write_atomically(options.note, f"{allocation.generation}\n")
        except OSError as error:
            print(f"edt-discover: {options.note}: {error.strerror}", file=sys.stderr)  # the hosts count
    return 0


def _fail(text: str) -> int:
    print(f"edt-discover: {text}", file=sys.stderr)
    return UNUSABLE


if __name__ == "__main__":
    sys.exit(main())
