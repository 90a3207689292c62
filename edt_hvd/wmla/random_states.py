"""The states of the global random number generators: random's, NumPy's, and torch's of the CPU."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, eq=False)
class RandomStates:
    """The states of the global generators."""

    python: Any
    numpy: Any
    torch: torch.Tensor

    @classmethod
    def now(cls) -> "RandomStates":
        """As they are in this process."""
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state())

    def restore(self) -> None:
        """Put this process's generators into these states."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)

    def as_json(self) -> dict[str, Any]:
        """The states as values of JSON."""
        name, keys, *rest = self.numpy
        return {
            "python": self.python,
            "numpy": [name, keys.tolist(), *rest],
            "torch": bytes(self.torch.tolist()).hex(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RandomStates":
        """The states that `as_json` gave."""
        version, keys, gauss = content["python"]
        name, numpy_keys, *rest = content["numpy"]
        return cls(
            (version, tuple(keys), gauss),
            (name, np.array(numpy_keys, dtype=np.uint32), *rest),
            torch.tensor(list(bytes.fromhex(content["torch"])), dtype=torch.uint8),
        )
