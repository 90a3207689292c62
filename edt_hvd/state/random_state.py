"""The states of all global random number generators of a process, as plain values and tensors."""

import random
from typing import Any

import numpy as np
import torch


def capture() -> dict[str, Any]:
    """The states of torch's generators (CPU and, if in use, this worker's GPU), NumPy's and Python's."""
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
    """Go on drawing where `capture` was called."""
    torch.set_rng_state(captured["torch"])
    numpy = captured["numpy"]
    keys = np.frombuffer(numpy["state"]["key"], dtype=np.uint32)
    np.random.set_state(numpy | {"state": numpy["state"] | {"key": keys}})
    random.setstate(captured["python"])
    if "cuda" in captured and torch.cuda.is_available():
        torch.cuda.set_rng_state(captured["cuda"])
