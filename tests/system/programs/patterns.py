"""What loops written for one process bring along, in elastic form; some are trained, one after another.

patterns.py OUT PATTERN... [--changes JSON] [--hang]

============  =====================================================================================
gan           discriminator and generator in turns, batch norm in both, noise drawn in the loop
sam           sharpness-aware minimization: two passes and a way back between them, dropout
lbfgs         an optimizer that evaluates the step again and again
shared        a body under two heads, each with an optimizer over the body and itself, in turns and together
weighted      a weighted sampler, with an average of the weights and the best loss of an epoch
bucketed      a batch sampler whose batches have different sizes
streamed      a stream that shuffles what it reads, all of it on each worker
sharded       a stream in shards with a state
hugging_face  a stream of Hugging Face's datasets, shuffled
images        channels last, activation checkpointing, bfloat16, a gradient scaler and clipping
compiled      a model that torch compiles
============  =====================================================================================

JSON is a list of [AT, SIZE] as in scheduled.py, carried out in each of the trainings. With --hang the
worker of rank 1 hangs after the first epoch, until it is killed. At the end the coordinator writes
OUT/final.json with a SHA-256 of each pattern's models, optimizers and numbers, and the size of the world in
each of its steps.
"""

import argparse
import copy
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from models import leaves
from scheduled import wait_for_change
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import IterableDataset, Sampler, TensorDataset, WeightedRandomSampler

import edt_hvd
from edt_launch.core.files.atomic import write_atomically

EPOCHS = 3
SAMPLES, BATCH, MICRO = 46, 18, 4

Values = dict[str, Any]
Pattern = tuple[Values, Callable[[Any, edt_hvd.Step], None]]
"""What is in the state, and a step of the training."""


def points() -> TensorDataset:
    samples = torch.randn(SAMPLES, 6, generator=torch.Generator().manual_seed(1))
    return TensorDataset(samples, (samples[:, :2].sum(1) > 0).long())


def loader(**options: Any) -> edt_hvd.ElasticDataLoader:
    return edt_hvd.ElasticDataLoader(
        points(), **{"effective_batch_size": BATCH, "micro_batch_size": MICRO} | options
    )


def distributed(kind: Callable[..., torch.optim.Optimizer], model: nn.Module, **options: Any) -> Any:
    return edt_hvd.DistributedOptimizer(kind(model.parameters(), **options), model)


def gan() -> Pattern:
    generator = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6))
    discriminator = nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)
    )
    judge = nn.functional.binary_cross_entropy_with_logits

    def train(state: Any, step: edt_hvd.Step) -> None:
        for real, _ in step:
            fake = generator(torch.randn(len(real), 4)).detach()
            found = discriminator(torch.cat([real, fake]))
            truth = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
            step.backward(judge(found, truth))
        state.d_optimizer.step()
        state.losses.append(step.loss)
        for real, _ in step:
            found = discriminator(generator(torch.randn(len(real), 4)))
            step.backward(judge(found, torch.ones(len(real), 1)))
        state.g_optimizer.step()

    values = {
        "generator": generator,
        "discriminator": discriminator,
        "g_optimizer": distributed(torch.optim.Adam, generator, lr=1e-2),
        "d_optimizer": distributed(torch.optim.Adam, discriminator, lr=1e-2),
        "loader": loader(),
    }
    return values, train


def sam() -> Pattern:
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 2))

    def train(state: Any, step: edt_hvd.Step) -> None:
        for inputs, targets in step:
            step.backward(nn.functional.cross_entropy(model(inputs), targets))
        gradients = [parameter.grad.clone() for parameter in model.parameters()]
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        with torch.no_grad():
            before = [parameter.clone() for parameter in model.parameters()]
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.add_(0.05 * gradient / (norm + 1e-12))
        for inputs, targets in step:
            step.backward(nn.functional.cross_entropy(model(inputs), targets))
        with torch.no_grad():
            for parameter, there in zip(model.parameters(), before, strict=True):
                parameter.copy_(there)
        state.optimizer.step()

    return {
        "model": model,
        "optimizer": distributed(torch.optim.SGD, model, lr=0.1, momentum=0.9),
        "loader": loader(),
    }, train


def lbfgs() -> Pattern:
    model = nn.Linear(6, 2)

    def train(state: Any, step: edt_hvd.Step) -> None:
        def closure() -> float:
            for inputs, targets in step:
                step.backward(nn.functional.cross_entropy(model(inputs), targets))
            return step.loss

        state.optimizer.step(closure)

    return {
        "model": model,
        "optimizer": distributed(torch.optim.LBFGS, model, lr=0.3, max_iter=3),
        "loader": loader(),
    }, train


def shared() -> Pattern:
    body = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
    heads = [nn.Linear(8, 2), nn.Linear(8, 2)]

    def train(state: Any, step: edt_hvd.Step) -> None:
        for inputs, targets in step:
            seen = body(inputs)
            losses = [nn.functional.cross_entropy(head(seen), targets) for head in heads]
            step.backward(sum(losses))
        if step.index != 1:
            state.first_optimizer.step()
        if step.index != 0:
            state.second_optimizer.step()

    models = [nn.Sequential(body, head) for head in heads]
    values = {
        "body": body,
        "first_head": heads[0],
        "second_head": heads[1],
        "first_optimizer": distributed(torch.optim.Adam, models[0], lr=1e-2),
        "second_optimizer": distributed(torch.optim.SGD, models[1], lr=0.1, momentum=0.9),
        "loader": loader(),
    }
    return values, train


def weighted() -> Pattern:
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
    average = copy.deepcopy(model).requires_grad_(False)
    labels = points().tensors[1]

    def train(state: Any, step: edt_hvd.Step) -> None:
        for inputs, targets in step:
            step.backward(nn.functional.cross_entropy(model(inputs), targets))
        state.optimizer.step()
        with torch.no_grad():
            for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(parameter, 0.1)

    values = {
        "model": model,
        "average": average,
        "optimizer": distributed(torch.optim.Adam, model, lr=1e-2),
        "loader": loader(sampler=WeightedRandomSampler((1.0 + labels).tolist(), SAMPLES)),
    }
    return values, train


class Buckets(Sampler[list[int]]):
    """Batches of neighbours, in another order every epoch; the longest is ten times the shortest."""

    SIZES = (2, 20, 5, 19)

    def __len__(self) -> int:
        return len(self.SIZES)

    def __iter__(self) -> Iterator[list[int]]:
        ends = torch.tensor(self.SIZES).cumsum(0).tolist()
        for bucket in torch.randperm(len(self.SIZES)).tolist():
            yield list(range(ends[bucket] - self.SIZES[bucket], ends[bucket]))


def classifying(batches: edt_hvd.ElasticDataLoader, is_compiled: bool = False) -> Pattern:
    """A small classifier, whose loader is what matters."""
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2))
    # What the compiler makes is not the question.
    forward = torch.compile(model, backend="aot_eager") if is_compiled else model

    def train(state: Any, step: edt_hvd.Step) -> None:
        for inputs, targets in step:
            step.backward(nn.functional.cross_entropy(forward(inputs), targets))
        state.optimizer.step()

    optimizer = distributed(torch.optim.Adam, model, lr=1e-2)
    return {"model": model, "optimizer": optimizer, "loader": batches}, train


def bucketed() -> Pattern:
    return classifying(loader(effective_batch_size=None, batch_sampler=Buckets()))


def compiled() -> Pattern:
    return classifying(loader(), is_compiled=True)


class Shuffled(IterableDataset[Any]):
    """The points in another order every epoch, with noise that is drawn as they are read."""

    def __iter__(self) -> Iterator[Any]:
        data = points()
        for index in torch.randperm(SAMPLES).tolist():
            inputs, target = data[index]
            yield inputs + 0.1 * torch.randn(6), target


class Shards:
    """The points in shards of five and one of six; goes on in the middle of a shard."""

    def __init__(self, shards: range) -> None:
        self.shards = shards
        self.given = 0

    @property
    def num_shards(self) -> int:
        return len(self.shards)

    def shard(self, num_shards: int, index: int) -> "Shards":
        start, stop = (number * len(self.shards) // num_shards for number in (index, index + 1))
        return Shards(self.shards[start:stop])

    def __iter__(self) -> Iterator[Any]:
        first, self.given = self.given, 0
        data = points()
        found = [index for index in range(SAMPLES) if min(index // 5, 8) in self.shards]
        for self.given, index in enumerate(found[first:], first + 1):
            yield data[index]
        self.given = 0

    def state_dict(self) -> Values:
        return {"given": self.given}

    def load_state_dict(self, state: Values) -> None:
        self.given = state["given"]


def of_stream(stream: Any, **options: Any) -> Pattern:
    return classifying(edt_hvd.ElasticDataLoader(stream, BATCH, MICRO, **options))


def streamed() -> Pattern:
    return of_stream(Shuffled())


def sharded() -> Pattern:
    return of_stream(Shards(range(9)), snapshot_every_n_steps=2)


def hugging_face() -> Pattern:
    import datasets

    inputs, targets = points().tensors
    rows = datasets.Dataset.from_dict({"inputs": inputs.tolist(), "target": targets.tolist()})
    stream = rows.to_iterable_dataset(num_shards=6).shuffle(seed=5, buffer_size=4)

    def collate(found: list[Any]) -> Any:
        return torch.tensor([row["inputs"] for row in found]), torch.tensor([row["target"] for row in found])

    return of_stream(stream.map(lambda row: {"target": 1 - row["target"]}), collate_fn=collate)


class Convolutions(nn.Module):
    """Recomputes the activations of its first half in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1)
        )
        self.second = nn.Linear(8 * 16, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        activations = checkpoint(self.first, inputs, use_reentrant=False)
        return self.second(activations.flatten(1))


def images() -> Pattern:
    model = Convolutions().to(memory_format=torch.channels_last)
    generator = torch.Generator().manual_seed(1)
    pictures = torch.randn(SAMPLES, 3, 4, 4, generator=generator)
    data = TensorDataset(pictures, (pictures.sum((1, 2, 3)) > 0).long())
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def train(state: Any, step: edt_hvd.Step) -> None:
        for inputs, targets in step:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found = model(inputs.to(memory_format=torch.channels_last))
            step.backward(nn.functional.cross_entropy(found.float(), targets), scaler=scaler)
        scaler.unscale_(state.optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(state.optimizer)
        scaler.update()

    return {
        "model": model,
        "optimizer": distributed(torch.optim.SGD, model, lr=0.1, momentum=0.9),
        "scaler": scaler,
        "loader": edt_hvd.ElasticDataLoader(data, BATCH, MICRO),
    }, train


ALL = (
    *(gan, sam, lbfgs, shared, weighted, bucketed, streamed, sharded, hugging_face),
    *(images, compiled),
)
PATTERNS = {pattern.__name__: pattern for pattern in ALL}


def evaluate(out: Path) -> None:
    """Meet after the epoch; rank 1 hangs until it is killed, unless there is a file OUT/killed."""
    if edt_hvd.rank() == 1 and not (out / "killed").exists():
        write_atomically(out / "hanging", str(os.getpid()))
        time.sleep(600)
    edt_hvd.barrier()


class Part:
    """The part of a state that belongs to a pattern: its values, each under a name of its own."""

    def __init__(self, state: Any, name: str) -> None:
        vars(self).update(_state=state, _name=name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, f"{self._name}_{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._state, f"{self._name}_{name}", value)


def digest(part: Part, names: list[str]) -> str:
    """A SHA-256 of values."""
    found = {name: getattr(part, name) for name in names}
    trees = {name: each.state_dict() if hasattr(each, "state_dict") else each for name, each in found.items()}
    sha = hashlib.sha256()
    for name, data in leaves("", trees):
        sha.update(name.encode() + data)
    return sha.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("patterns", choices=PATTERNS, nargs="+")
    parser.add_argument("--changes", type=json.loads, default=[])
    parser.add_argument("--hang", action="store_true")
    options = parser.parse_args()

    edt_hvd.init(deterministic=True)
    values: dict[str, Values] = {}
    steps = {}
    for name in options.patterns:
        torch.manual_seed(4)
        own, steps[name] = PATTERNS[name]()
        values[name] = own | {"epoch": 0, "losses": [], "best": float("inf"), "drawn": [], "sizes": []}
    state = edt_hvd.TorchState(
        **{f"{name}_{key}": value for name, own in values.items() for key, value in own.items()}
    )
    due = [at for at, _ in options.changes]

    def wait_if_due(name: str, done: int) -> None:
        if done + 1 in due:
            number = options.patterns.index(name) * len(due) + due.index(done + 1)
            wait_for_change(options.out / f"change.{number}")

    def train_pattern(name: str, part: Any) -> None:
        while part.epoch < EPOCHS:
            for step in part.loader:
                wait_if_due(name, part.loader.total_steps_done)
                steps[name](part, step)
                part.losses.append(step.loss)
                part.sizes.append(edt_hvd.size())
                state.commit()
            if options.hang:
                evaluate(options.out)
            part.best = min(part.best, step.loss)  # there is no epoch without a step
            part.drawn.append(torch.rand(()).item())
            part.losses.append(part.loader.summary.loss)
            part.epoch += 1

    @edt_hvd.elastic
    def train(state: Any) -> None:
        for name in options.patterns:
            train_pattern(name, Part(state, name))

    train(state)
    if edt_hvd.is_coordinator():
        found = {}
        for name, own in values.items():
            part = Part(state, name)
            sha = digest(part, [key for key in own if key not in ("epoch", "sizes")])
            found[name] = {"sha": sha, "sizes": part.sizes}
        (options.out / "final.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
