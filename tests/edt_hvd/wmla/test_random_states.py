import json
import random
from typing import Any

import numpy as np
import torch

from edt_hvd.wmla.random_states import RandomStates


def drawn() -> tuple[Any, ...]:
    return random.gauss(0, 1), np.random.standard_normal(3).tolist(), torch.randn(3).tolist()


def test_states_survive_json() -> None:
    drawn()  # leaves the second number of a pair behind
    before = RandomStates.now()
    content = json.loads(json.dumps(before.as_json()))
    expected, seed = drawn(), torch.initial_seed()
    torch.manual_seed(seed + 1)
    RandomStates.from_json(content).restore()
    assert torch.initial_seed() == seed
    assert drawn() == expected
    before.restore()
    assert drawn() == expected
