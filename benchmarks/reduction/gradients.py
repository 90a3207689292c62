"""Gradients to sum: of two small models trained on real data, and heavy-tailed random ones."""

from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import nn

STEPS = 6
SAMPLES = 8
LEARNING_RATE = 0.1


@dataclass(frozen=True)
class Gradients:
    """The gradients of a training's micro-batches, all of the same size.

    Attributes:
        samples: micro-batch after micro-batch, one tensor a parameter; `micro_batches` of them are a step.
    """

    source: str
    micro_batches: int
    samples: list[list[torch.Tensor]]

    def addends(self, step: int, parameter: int) -> torch.Tensor:
        """What is averaged, of shape ``(micro_batches, n)``."""
        of_step = self.samples[step * self.micro_batches : (step + 1) * self.micro_batches]
        return torch.stack([sample[parameter].reshape(-1) for sample in of_step])


def multilayer_perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def convolutional_network() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1, stride=2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 4 * 4, 10)),
    )


def of_training(source: str, model: nn.Module, micro_batches: int) -> Gradients:
    """Train for some steps on scikit-learn's handwritten digits, in one process."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    labels = torch.tensor(digits.target)
    generator = torch.Generator().manual_seed(micro_batches)
    parameters = list(model.parameters())
    samples: list[list[torch.Tensor]] = []
    for _ in range(STEPS):
        for _ in range(micro_batches):
            chosen = torch.randint(len(labels), (SAMPLES,), generator=generator)
            loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
            samples.append(list(torch.autograd.grad(loss, parameters)))
        sums = (sum(of_one) for of_one in zip(*samples[-micro_batches:], strict=True))
        with torch.no_grad():
            for parameter, total in zip(parameters, sums, strict=True):
                parameter.add_(total, alpha=-LEARNING_RATE / micro_batches)
    return Gradients(source, micro_batches, samples)


def heavy_tailed(micro_batches: int) -> Gradients:
    """Student's t with two degrees of freedom, in elements whose sizes differ by orders of magnitude."""
    generator = torch.Generator().manual_seed(micro_batches)
    sizes = torch.randn(4000, generator=generator).mul(2).exp()
    samples = []
    for _ in range(STEPS * micro_batches):
        normal = torch.randn((3, len(sizes)), generator=generator)
        samples.append([sizes * normal[0] / normal[1:].square().mean(0).sqrt()])
    return Gradients("heavy-tailed", micro_batches, samples)


def all_sources(micro_batches: int) -> list[Gradients]:
    """Every kind, with that many micro-batches a step."""
    torch.manual_seed(0)
    return [
        of_training("MLP on digits", multilayer_perceptron(), micro_batches),
        of_training("CNN on digits", convolutional_network(), micro_batches),
        heavy_tailed(micro_batches),
    ]
