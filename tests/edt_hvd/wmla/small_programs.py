"""Small programs to train: a network, its data, a program's own step, loggers that remember."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from edt_hvd.wmla import Callback, FabricModel, LoggerCallback
from edt_hvd.wmla.logs.loggers import Metrics


class Network(nn.Module):
    """Eight numbers to three classes, with a frozen layer, batch norm and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(8, 8)
        self.hidden = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.fc = nn.Linear(16, 3)
        for parameter in self.frozen.parameters():
            parameter.requires_grad = False

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.norm(self.hidden(self.frozen(inputs))))
        found: torch.Tensor = self.fc(nn.functional.dropout(hidden, 0.25, self.training))
        return found


class Points(torch.utils.data.Dataset[Any]):
    """Points and the class that they are in."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.inputs = torch.randn(count, 8, generator=generator)
        self.classes = (self.inputs.sum(1) > 0).long() + (self.inputs[:, 0] > 1).long()

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.inputs[index], int(self.classes[index])


def datasets() -> tuple[Points, Points]:
    return Points(75, 0), Points(21, 1)


def own_step(model: Any, data: Any, eva: Any, train_loader: Any, fn_args: Any) -> Any:
    """What programs for WMLA have as fn_step_train, with a step that they should not make."""
    inputs, labels = data
    optimizer = model.get_optimizer()
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = model.get_loss_function()(outputs, labels)
    loss.backward()
    optimizer.step()
    return eva(outputs, labels), loss


def own_test(model: Any, test_iter: Iterable[Any], fn_args: Any) -> float:
    total, count = 0.0, 0
    for inputs, labels in test_iter:
        assert not model.training
        assert not torch.is_grad_enabled()
        total += model.get_loss_function()(model(inputs), labels).item() * len(labels)
        count += len(labels)
    return total / count


class Remembering(LoggerCallback):
    """A logger of the first generation, which does not call its base's constructor."""

    def __init__(self) -> None:
        self.train: list[tuple[float, float, int]] = []
        self.test: list[tuple[float, float]] = []
        self.ended = 0

    def log_train_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        assert (type(loss), type(acc), type(completed_batch), worker) == (float, float, int, 0)
        self.train.append((loss, acc, completed_batch))

    def log_test_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.test.append((loss, acc))

    def on_train_end(self) -> None:
        self.ended += 1


class RememberingNames(LoggerCallback):
    """A logger of the second generation."""

    def __init__(self) -> None:
        self.train: list[tuple[Metrics, int, int]] = []
        self.test: list[tuple[Metrics, int, int]] = []

    def log_train_metrics(self, metrics: Metrics, iteration: int, epoch: int, workers: int = 0) -> None:
        self.train.append((metrics, iteration, epoch))

    def log_test_metrics(self, metrics: Metrics, iteration: int, epoch: int) -> None:
        self.test.append((metrics, iteration, epoch))


class Halving(Callback):
    """Changes the learning rate, as programs for WMLA do."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.rates: list[float] = []
        self.saves: list[bool] = []

    def on_epoch_begin(self, epoch: int) -> None:
        self.epochs.append(epoch)
        for group in self.params["optimizer"].param_groups:
            group["lr"] *= 0.5 if epoch else 1
            self.rates.append(group["lr"])

    def on_epoch_end(self, epoch: int, save_model: bool = False) -> None:
        self.saves.append(save_model)


def make(
    datasets_function: Any = datasets, **options: Any
) -> tuple[FabricModel, Network, torch.optim.Optimizer]:
    """A program whose optimizer has a part of the parameters."""
    torch.manual_seed(5)
    network = Network()
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    return (
        FabricModel(network, datasets_function, nn.CrossEntropyLoss(), optimizer, **options),
        network,
        optimizer,
    )


def weights(network: nn.Module) -> bytes:
    """All bits of a network's parameters and buffers."""
    return b"".join(tensor.detach().numpy().tobytes() for tensor in network.state_dict().values())
