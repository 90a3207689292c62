"""Compiled models run the same code for a shape, whichever shapes came before."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import edt_hvd

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def model() -> Iterator[nn.Module]:
    """A model with a distributed optimizer, and the compiler as it was before that."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch._dynamo.config.patch(recompile_limit=8, fail_on_recompile_limit_hit=False):
        edt_hvd.DistributedOptimizer(optimizer, model)
        yield model
    torch._dynamo.config.automatic_dynamic_shapes = True
    torch.compiler.reset()


def test_every_shape_is_compiled_by_itself_and_none_is_run_uncompiled(model: nn.Module) -> None:
    compiled_for = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        compiled_for.extend([len(each) for each in inputs if len(each) > 3])
        return graph.forward

    compiled = torch.compile(model, backend=backend)
    for size in (5, 7, 9, 5):
        compiled(torch.ones(size, 3))
    assert [(size, type(size)) for size in compiled_for] == [(5, int), (7, int), (9, int)]
    torch._dynamo.config.recompile_limit = 3
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        compiled(torch.ones(11, 3))
