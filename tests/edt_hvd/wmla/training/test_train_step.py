from typing import Any

import pytest
import torch

import edt_hvd
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training.data import training_loader
from edt_hvd.wmla.training.train_step import train_step
from small_programs import Network, Points, datasets

pytestmark = [
    pytest.mark.usefixtures("alone"),
    pytest.mark.filterwarnings("ignore:optimizer.step.. was not called"),
]


def outcomes(**options: Any) -> list[Any]:
    model = options.pop("model", None) or Network()
    optimizer = options.pop("optimizer", None) or torch.optim.SGD(model.fc.parameters(), lr=0.1)
    if not hasattr(optimizer, "_edt_reducer"):
        edt_hvd.DistributedOptimizer(optimizer, model)
    program = Program(model, optimizer, options.pop("loss", torch.nn.CrossEntropyLoss()), datasets, **options)
    loader = training_loader(Points(12, 0), TrainConfig(1, 8, 12, 2), None)
    steps = train_step(program, loader)
    return [steps(step, batch) for step in loader for batch in step]


def returning(answer: Any) -> Any:
    def step(model: Any, batch: Any, eva: Any, train_loader: Any, fn_args: Any) -> Any:
        assert isinstance(batch, tuple)
        assert isinstance(train_loader, edt_hvd.ElasticDataLoader)
        assert fn_args is None
        assert model.training
        return answer

    return step


@pytest.mark.parametrize("answer", [None, 0.5, (1, 2, 3)])
def test_a_step_that_returns_something_else(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"fn_step_train returned .*; return \(acc, loss\)"):
        outcomes(fn_step_train=returning(answer))


def set_rate(model: Any, *_: Any) -> None:
    (group,) = model.get_optimizer().param_groups
    group["lr"] = group["lr"]
    group["lr"] = 0.0


def replace_layer(model: Any, *_: Any) -> None:
    model.fc = torch.nn.Linear(2, 2)


@pytest.mark.parametrize(
    "step, said",
    [
        (set_rate, r"sets 'lr' of parameter group 0.*on_epoch_begin"),
        (
            lambda model, *_: torch.optim.lr_scheduler.StepLR(model.get_optimizer(), 1),
            "sets 'initial_lr' of .*on_epoch_begin, in params",
        ),
        (replace_layer, "gives the model a new parameter, fc.weight, which"),
        (
            lambda model, *_: model.get_optimizer().load_state_dict(model.get_optimizer().state_dict()),
            "loads a state into the optimizer; do so before",
        ),
    ],
)
def test_a_step_cannot_set_what_all_executors_share(step: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"fn_step_train {said}"):
        outcomes(fn_step_train=step)


def test_a_step_may_use_the_scripts_model_and_its_optimizer() -> None:
    model = Network()
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)

    def step(_: Any, batch: Any, *others: Any) -> Any:
        inputs, labels = batch
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return 0.0, loss

    found = outcomes(model=model, optimizer=optimizer, fn_step_train=step)
    assert all(parameter.grad is not None for parameter in model.fc.parameters())
    assert len(found) == 2
