import pytest
import torch

from edt_hvd.wmla.errors import UnsupportedError
from edt_hvd.wmla.program import refuse_keras


def test_names_of_losses_and_optimizers_are_refused_as_what_they_are() -> None:
    with pytest.raises(UnsupportedError, match=r"^'adam' and 'mse', as in programs for Keras; give a torch"):
        refuse_keras(torch.nn.Linear(1, 1), "adam", "mse")
    with pytest.raises(UnsupportedError, match=r"^'mse', as in"):
        refuse_keras(torch.nn.Linear(1, 1), None, "mse")
