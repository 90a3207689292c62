"""A bare Horovod world of two in which rank 1 goes wrong, without a launcher.

For each world comes what goes wrong, and the port of the world's rendezvous; what has come of the world goes
back.

=========  ========================================================================================
garbage    rank 1 sends rank 0 a message that belongs to no operation, and waits for a message
half       rank 1 says when it is sending a large tensor, and is then to be killed
skipped    rank 1 fails in the first of two operations, before it has sent anything
refused    rank 1 aborts its collectives while rank 0 enqueues operations that it does not wait for
stopped    rank 1 is to be stopped while rank 0 waits for it in a collective
unformed   rank 1 is to be stopped while the world is being formed
=========  ========================================================================================

In the last two rank 0 aborts its collectives when one more message comes.
"""

import itertools
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection

import horovod.torch as hvd
import psutil
import torch
from horovod.common.exceptions import HorovodInternalError
from horovod.torch import mpi_ops

from edt_hvd.world.elastic_world import abort_collectives

UNBOUND, NO_SLOT = 1, 2**40
"""Gloo's opcode of a message with a payload, and a slot that nobody waits for."""

LARGE = 2**26


def connected() -> list[int]:
    """The descriptors of Gloo's connections."""
    return [c.fd for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_ESTABLISHED]


def garbage(test: Connection) -> str:
    if hvd.rank() == 0:
        while True:
            hvd.allreduce(torch.ones(4), name="wait")
    for descriptor in connected():
        os.write(descriptor, struct.pack("=6Q", 48 + 8, UNBOUND, NO_SLOT, 0, 8, 0))
    test.recv()
    return "woken"


def half(test: Connection) -> str:
    received = torch.full((LARGE,), float(hvd.rank()))
    handle = hvd.broadcast_async_(received, root_rank=1, name="large")
    if hvd.rank() == 0:
        while received[0] == 0:
            time.sleep(0.001)
        test.send("half")
    hvd.synchronize(handle)
    return "whole"


def skipped(_test: Connection) -> str:
    mine = [torch.full((8,), float(10 * number + hvd.rank())) for number in (1, 2)]
    outputs = [torch.empty(0), torch.empty(0)]
    if hvd.rank() == 1:
        outputs[0] = torch.empty(0, requires_grad=True)  # has no room for the others' numbers, and gets none
    handle = mpi_ops._grouped_allgather_async(mine, outputs, "pair", hvd.global_process_set)
    found = hvd.synchronize(handle)
    return str([part.tolist()[::8] for part in found])


def refused(_test: Connection) -> str:
    if hvd.rank() == 1:
        hvd.allreduce(torch.ones(1), name="start")
        time.sleep(0.02)
        abort_collectives()
        hvd.shutdown()
        return "cut"
    hvd.allreduce(torch.ones(1), name="start")
    handles: list[int] = []
    try:
        numbers = itertools.count()
        handles.extend(hvd.allreduce_async_(torch.ones(1), name=f"number {number}") for number in numbers)
    except HorovodInternalError:
        pass
    except ValueError:
        return "a name is taken"
    while not all(map(hvd.poll, handles)):
        time.sleep(0.01)
    return "all answered"


def stopped(test: Connection) -> str:
    hvd.allreduce(torch.ones(1), name="start")
    test.send("together")
    while True:
        hvd.allreduce(torch.ones(1), name="wait")


def unformed(_test: Connection) -> str:
    return "formed"


def abort_when_told(test: Connection) -> None:
    test.recv()
    abort_collectives()


WHAT: dict[str, Callable[[Connection], str]] = {
    "garbage": garbage,
    "half": half,
    "skipped": skipped,
    "refused": refused,
    "stopped": stopped,
    "unformed": unformed,
}


def main(rank: str, environment: Mapping[str, str], test: Connection) -> None:
    """Take part in worlds, until the test ends this process."""
    os.environ |= {**environment, "HOROVOD_RANK": rank, "HOROVOD_LOCAL_RANK": rank}
    while True:
        what, os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"] = test.recv().split()
        if rank == "0" and what in ("stopped", "unformed"):
            threading.Thread(target=abort_when_told, args=(test,), daemon=True).start()
        try:
            hvd.init()
            test.send(WHAT[what](test))
        except (HorovodInternalError, ValueError):  # as Horovod says that a world could not be formed
            test.send("an error")
        hvd.shutdown()
