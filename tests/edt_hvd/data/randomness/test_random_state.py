"""All global generators go on where they were."""

import io
import random

import numpy as np
import torch

from edt_hvd.data.randomness import random_state


def draw() -> list[float]:
    return [float(torch.rand(())), np.random.random(), float(np.random.normal()), random.random()]


def test_the_same_numbers_are_drawn_again_from_states_that_need_no_pickle() -> None:
    np.random.normal()  # leaves half a pair behind
    file = io.BytesIO()
    torch.save(random_state.capture(), file)
    expected = draw()
    file.seek(0)
    random_state.restore(torch.load(file, weights_only=True))
    assert draw() == expected
