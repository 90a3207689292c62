"""Three small trainings with everything in them whose bits could depend on the number of workers.

===========  ==========================================  ================================================
model        random numbers, and what counts along       optimizer and schedule
===========  ==========================================  ================================================
mlp          augmentation, dropout; a second backward    Adam (amsgrad), cosine
             pass for some micro-batches
cnn          augmentation in loading processes,          SGD (Nesterov, weight decay), steps,
             batch norm with two kinds of averages       a gradient scaler that grows
transformer  augmentation, dropout in every layer        AdamW in two groups, clipping, warm-up
===========  ==========================================  ================================================

Every augmentation draws from the global generators of torch, NumPy and `random`; between epochs, weights are
shaken. No batch divides evenly
into micro-batches and no epoch into batches; the last batch of an epoch has too few micro-batches for four
workers, and the last micro-batch of the convolutional network has one sample.
"""

import hashlib
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import edt_hvd

EPOCHS = 2
STEPS_PER_EPOCH = 3
STEPS = EPOCHS * STEPS_PER_EPOCH
"""Optimizer steps of each training."""

NAMES = ("mlp", "cnn", "transformer")
ALL_STEPS = STEPS * len(NAMES)
"""Optimizer steps of the three trainings together."""

CLASSES = 3


# Data.


class Augmented(Dataset):
    """Samples that are different each time."""

    def __init__(self, samples: Tensor, targets: Tensor, augment: Callable[[Tensor], Tensor]) -> None:
        self.samples = samples
        self.targets = targets
        self.augment = augment

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.augment(self.samples[index]), self.targets[index]


def points() -> Augmented:
    samples = torch.randn(51, 12, generator=torch.Generator().manual_seed(1))
    return Augmented(samples, samples[:, :CLASSES].argmax(1), jitter)


def jitter(point: Tensor) -> Tensor:
    noisy = point * np.random.uniform(0.8, 1.2) + 0.1 * torch.randn(point.shape)
    noisy[random.randrange(len(point))] = 0
    return noisy.float()


def pictures() -> Augmented:
    samples = torch.randn(45, 2, 8, 8, generator=torch.Generator().manual_seed(2))
    return Augmented(samples, samples.mean((1, 2, 3)).mul(30).long() % CLASSES, crop_and_flip)


def crop_and_flip(picture: Tensor) -> Tensor:
    top, left = random.randrange(5), random.randrange(5)
    cropped = nn.functional.pad(picture, (2, 2, 2, 2))[:, top : top + 8, left : left + 8]
    flipped = cropped.flip(2) if np.random.random() < 0.5 else cropped
    return flipped + 0.1 * torch.randn(picture.shape)


WORDS = 16


def sentences() -> Augmented:
    samples = torch.randint(WORDS, (47, 9), generator=torch.Generator().manual_seed(3))
    return Augmented(samples, samples.sum(1) % CLASSES, misspell)


def misspell(sentence: Tensor) -> Tensor:
    other = torch.where(torch.rand(sentence.shape) < 0.1, 0, sentence)
    other[random.randrange(len(sentence))] = int(np.random.randint(WORDS))
    return other


# Models.


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(12, 32),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(32, 16),
        nn.GELU(),
        nn.Dropout(0.1),
        nn.Linear(16, CLASSES),
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3),
        nn.BatchNorm2d(8, momentum=None),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32, CLASSES),
    )


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        self.places = nn.Parameter(0.1 * torch.randn(9, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, sentences: Tensor) -> Tensor:
        return self.head(self.layers(self.words(sentences) + self.places).mean(1))


def with_and_without_decay(model: nn.Module) -> list[dict[str, Any]]:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0, "lr": 2e-2}]


# Trainings.


@dataclass
class Metrics:
    """What was measured after every step; part of the state like a scheduler."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)

    def state_dict(self) -> dict[str, list[float]]:
        return asdict(self)

    def load_state_dict(self, state: dict[str, list[float]]) -> None:
        for name, values in state.items():
            setattr(self, name, list(values))


@dataclass
class Training:
    """One model, with all that its training needs."""

    name: str
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    loader: edt_hvd.ElasticDataLoader
    clip: float = math.inf
    scaler: torch.amp.GradScaler = field(default_factory=lambda: torch.amp.GradScaler("cpu", enabled=False))
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def parts(self) -> dict[str, Any]:
        """What has a state, by name."""
        names = ("metrics", "model", "optimizer", "scheduler", "scaler", "loader")
        return {name: getattr(self, name) for name in names}

    def step(self) -> None:
        """Train for one step from where the state is."""
        if self.loader.position == len(self.loader):
            self._shake()
        self._step(next(iter(self.loader)))

    def _shake(self) -> None:
        """Between two epochs: noise on the weights, added outside of any step."""
        generator = torch.Generator().manual_seed(self.loader.epoch)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.add_(0.01 * torch.randn(parameter.shape, generator=generator))

    def _step(self, step: Any) -> None:
        right = seen = 0
        for inputs, targets in step:
            outputs = self.model(inputs)
            again = self.name == "mlp" and int(targets[0]) == 0  # on some workers, therefore
            loss = nn.functional.cross_entropy(outputs, targets)
            step.backward(loss, scaler=self.scaler, retain_graph=again)
            if again:
                step.backward(0.1 * outputs.square().mean(), scaler=self.scaler)
            right += int((outputs.argmax(1) == targets).sum())
            seen += len(targets)
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        # Of up to 21 samples, the share times their number is the number of right ones again, to the bit.
        accuracy = edt_hvd.average(right / max(seen, 1), weight=seen)
        self.metrics.losses.append(step.loss)
        self.metrics.accuracies.append(accuracy)
        self.metrics.norms.append(float(norm))


def make() -> list[Training]:
    """The three trainings, before their first step; always the same."""
    torch.manual_seed(11)
    return [mlp_training(), cnn_training(), transformer_training()]


def mlp_training() -> Training:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    return Training(
        "mlp",
        model,
        edt_hvd.DistributedOptimizer(optimizer, model),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS),
        edt_hvd.ElasticDataLoader(points(), effective_batch_size=21, micro_batch_size=4, seed=5),
    )


def cnn_training() -> Training:
    model = cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)
    return Training(
        "cnn",
        model,
        edt_hvd.DistributedOptimizer(optimizer, model),
        torch.optim.lr_scheduler.StepLR(optimizer, step_size=2),
        edt_hvd.ElasticDataLoader(
            pictures(), effective_batch_size=18, micro_batch_size=4, seed=6, num_workers=2
        ),
        scaler=torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=2),
    )


def transformer_training() -> Training:
    model = Transformer()
    optimizer = torch.optim.AdamW(with_and_without_decay(model), lr=1e-2)
    return Training(
        "transformer",
        model,
        edt_hvd.DistributedOptimizer(optimizer, model),
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / 4)),
        edt_hvd.ElasticDataLoader(sentences(), effective_batch_size=20, micro_batch_size=3, seed=7),
        clip=0.5,
    )


def as_state(trainings: list[Training], **values: Any) -> edt_hvd.TorchState:
    """One state of all of them, every part under a name of its own."""
    parts = {f"{t.name}_{name}": part for t in trainings for name, part in t.parts.items()}
    return edt_hvd.TorchState(**parts, **values)


def steps_done(trainings: list[Training]) -> int:
    """Optimizer steps of all trainings together."""
    return sum(training.loader.total_steps_done for training in trainings)


def in_turn(trainings: list[Training]) -> Iterator[Training]:
    """Train them all to the end, one step each in turn, from where they are; gives who has stepped."""
    while steps_done(trainings) < ALL_STEPS:
        behind = min(trainings, key=lambda training: training.loader.total_steps_done)
        behind.step()
        yield behind


# Digests.


def digests(training: Training) -> dict[str, str]:
    """A SHA-256 for every value of a training, in the order in which a step computes them."""
    gradients = {name: parameter.grad for name, parameter in training.model.named_parameters()}
    metrics, *others = training.parts.items()
    parts = dict([metrics, ("gradient", gradients), *others])
    states = {name: part if isinstance(part, dict) else part.state_dict() for name, part in parts.items()}
    return {name: hashlib.sha256(data).hexdigest() for name, data in leaves("", states)}


def leaves(name: str, value: Any) -> Iterator[tuple[str, bytes]]:
    """The bytes of everything in nested containers, named by the way to it, in an order of its own."""
    if isinstance(value, dict):
        for key in value if not name else sorted(value, key=str):
            yield from leaves(f"{name}/{key}" if name else key, value[key])
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(f"{name}/{index}", item)
    elif isinstance(value, Tensor):
        described = f"{value.dtype} {tuple(value.shape)} ".encode()
        yield name, described + value.detach().contiguous().numpy().tobytes()
    elif isinstance(value, float):
        yield name, value.hex().encode()
    elif isinstance(value, int | str | None):
        yield name, repr(value).encode()
    else:
        raise TypeError(f"{name} is a {type(value).__name__}, of which no bytes are known; add it here")
