import copy

import pytest
import torch

import edt_hvd
from edt_hvd.wmla.training.shadow_module import ShadowModule, ShadowOptimizer
from small_programs import Network, Points

pytestmark = [
    pytest.mark.usefixtures("alone"),
    pytest.mark.filterwarnings("ignore:optimizer.step.. was not called"),
]


class Unused(torch.nn.Module):
    """Has a parameter that gets no gradient, and a buffer that is replaced in every forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.used = torch.nn.Linear(8, 3)
        self.unused = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.count = self.count + 1
        found: torch.Tensor = self.used(inputs)
        return found


def gradients(module: torch.nn.Module, through_shadow: bool) -> list[torch.Tensor | None]:
    """Of one step with three mini-batches, the last of them short."""
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(trained, lr=0.1), module)
    loader = edt_hvd.ElasticDataLoader(Points(20, 0), 20, 8, seed=3)
    shadow = ShadowModule(module)
    view = ShadowOptimizer(shadow, optimizer)
    for step in loader:
        for inputs, labels in step:
            if through_shadow:
                view.zero_grad()
                shadow.share_buffers()
                loss = torch.nn.functional.cross_entropy(shadow.module(inputs), labels)
                loss.backward()
                view.step()
                shadow.export_gradients(loss.detach(), step)
            else:
                step.backward(torch.nn.functional.cross_entropy(module(inputs), labels))
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()] + [
        torch.tensor(step.loss)
    ]


@pytest.mark.parametrize("kind", [Network, Unused])
def test_gradients_and_buffers_are_those_of_plain_steps(kind: type[torch.nn.Module]) -> None:
    one = kind()
    other = copy.deepcopy(one)
    expected, found = gradients(one, through_shadow=False), gradients(other, through_shadow=True)
    assert [e is None for e in expected] == [f is None for f in found]
    for before, after in zip(expected, found, strict=True):
        assert before is None or after is None or torch.equal(before, after)
    for name, buffer in one.named_buffers():
        assert torch.equal(buffer, other.get_buffer(name)), name


def test_a_change_of_the_real_parameters_shows() -> None:
    module = torch.nn.Linear(2, 2)
    shadow = ShadowModule(module)
    with torch.no_grad():
        module.weight.fill_(3)
    assert (next(shadow.module.parameters()) == 3).all()
    module.weight.data = torch.full((2, 2), 4.0)
    module.bias.requires_grad = False
    shadow.refresh()
    assert (next(shadow.module.parameters()) == 4).all()
    assert [p.requires_grad for p in shadow.module.parameters()] == [True, False]


def test_a_module_that_cannot_be_copied_is_named() -> None:
    module = torch.nn.Linear(2, 2)
    module.norm = module.weight.norm()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="Linear cannot be copied, which a fn_step_train takes"):
        ShadowModule(module)
