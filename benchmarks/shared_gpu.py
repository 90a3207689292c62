"""Lets the workers of a job use one GPU: for measuring and checking where there is only one."""

import os

import torch


def separate() -> None:
    """Have NCCL accept other workers on this worker's GPU; call it before the first collective on a GPU.

    NCCL refuses two ranks of one host on one GPU. Where slots have no devices of their own and there are
    fewer GPUs than slots, this worker counts as a host of its own: NCCL then goes over sockets, and an
    operation takes some ten milliseconds, because the GPU runs the workers' kernels in turns.
    """
    slots = int(os.environ.get("EDT_MAX_NP", "1"))
    if "EDT_DEVICE" not in os.environ and 0 < torch.cuda.device_count() < slots:
        os.environ["NCCL_HOSTID"] = f"{os.uname().nodename}.{os.getpid()}"
        os.environ.setdefault("NCCL_NET", "Socket")
