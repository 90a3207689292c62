"""Saving and restoring a process's global random number generators, as plain values and tensors."""

import random
from typing import Any

import numpy as np
import torch


def capture() -> dict[str, Any]:
    """The states of the generators of torch (CPU and, if in use, this worker's GPU), NumPy and Python."""
    numpy = np.random.get_state(legacy=False)
    found = {
        "torch": torch.get_rng_state(),
        "numpy": numpy | {"state": numpy["state"] | {"key": numpy["state"]["key"].tobytes()}},
        "python": random.getstate(),
    }
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def restore(captured: dict[str, Any]) -> None:
    """Set the generators to the states that `capture` returned."""
    torch.set_rng_state(captured["torch"])
    numpy = captured["numpy"]
    keys = np.frombuffer(numpy["state"]["key"], dtype=np.uint32)
    np.random.set_state(numpy | {"state": numpy["state"] | {"key": keys}})
    random.setstate(captured["python"])
    if "cuda" in captured and torch.cuda.is_available():
        torch.cuda.set_rng_state(captured["cuda"])
