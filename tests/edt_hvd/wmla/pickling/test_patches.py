import pytest
import torch
from torch.nn import functional

from edt_hvd.wmla.pickling import patches


def test_functions_of_torch_that_a_script_has_replaced_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    patches.warn_of_patches()

    def mine(self: torch.Tensor) -> torch.Tensor:
        return self

    mine.__module__ = "__main__"
    monkeypatch.setattr(functional, "relu", mine)
    monkeypatch.setattr(torch.nn.Linear, "forward", mine)
    with pytest.warns(
        UserWarning, match=r"^torch.nn.functional.relu, torch.nn.modules.linear.Linear.forward: "
    ):
        patches.warn_of_patches()
