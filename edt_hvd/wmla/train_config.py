"""How a training runs: `FabricModel.train`'s arguments, checked, as the numbers that the engine needs."""

import operator
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ScaleUp = Callable[[int, int], int]
"""(epoch, largest number of executors) -> largest number of executors from now on."""

DETERMINISTIC_VARIABLE = "EDT_WMLA_DETERMINISTIC"


@dataclass(frozen=True)
class TrainConfig:
    """The numbers of one training.

    Attributes:
        epochs: passes over the training set.
        batch_size: samples of a mini-batch, which goes through the model at once.
        effective_batch_size: samples of an optimizer step, over all executors.
        max_workers: executors that can be of use, or as many as the program wants at most.
        num_dataloader_threads: loading processes of an executor; 0: it loads by itself.
        validation_freq: epochs from one validation to the next.
        checkpoint_freq: epochs from one saved model to the next; 0: only the last is saved.
        seed: of the order of the samples and all random numbers.
        deterministic: have torch compute the same bits for the same work.
    """

    epochs: int
    batch_size: int
    effective_batch_size: int
    max_workers: int
    num_dataloader_threads: int = 0
    validation_freq: int = 1
    checkpoint_freq: int = 1
    seed: int = 0
    deterministic: bool = True

    @property
    def batches_per_step(self) -> int:
        """Mini-batches of an optimizer step."""
        return -(-self.effective_batch_size // self.batch_size)

    def is_last(self, epoch: int) -> bool:
        """Whether epoch `epoch`, from 0, is the last one."""
        return epoch == self.epochs - 1

    def validates_after(self, epoch: int) -> bool:
        """Whether the test set is run after epoch `epoch`, from 0."""
        return (epoch + 1) % self.validation_freq == 0

    def saves_after(self, epoch: int) -> bool:
        """Whether a numbered model is saved after epoch `epoch`, from 0."""
        return self.checkpoint_freq > 0 and (epoch + 1) % self.checkpoint_freq == 0


def make_train_config(
    epochs: int,
    batch_size: int,
    engines_number: int | None,
    *,
    effective_batch_size: int | None,
    worker_num: int | None,
    num_dataloader_threads: int,
    validation_freq: int,
    checkpoint_freq: int,
    seed: int,
    usual_engines: int = 1,
    environ: Mapping[str, str] = os.environ,
) -> TrainConfig:
    """Check `FabricModel.train`'s arguments and put them together.

    `usual_engines` is `engines_number` where the program says nothing.

    Raises:
        TypeError, ValueError: one that makes no sense, or two that exclude each other.
    """
    epochs = whole("epoch_number", epochs, 1)
    batch_size = whole("batch_size", batch_size, 1)
    engines_number = None if engines_number is None else whole("engines_number", engines_number, 1)
    worker_num = None if worker_num is None else whole("worker_num", worker_num, 1)
    num_dataloader_threads = whole("num_dataloader_threads", num_dataloader_threads, 0)
    validation_freq = whole("validation_freq", validation_freq, 1)
    checkpoint_freq = whole("checkpoint_freq", checkpoint_freq, 0)
    if effective_batch_size is not None:
        effective_batch_size = whole("effective_batch_size", effective_batch_size, 1)
    if engines_number is not None and effective_batch_size is not None:
        raise ValueError(
            f"engines_number={engines_number} and effective_batch_size={effective_batch_size} exclude each "
            "other, because the effective batch is batch_size times engines_number; give one of them"
        )
    if effective_batch_size is None:
        effective_batch_size = batch_size * (engines_number or worker_num or usual_engines)
    if batch_size > effective_batch_size:
        raise ValueError(
            f"batch_size={batch_size} is larger than effective_batch_size={effective_batch_size}, of which "
            "it is a part; make it smaller"
        )
    useful = -(-effective_batch_size // batch_size)
    return TrainConfig(
        epochs,
        batch_size,
        effective_batch_size,
        max_workers=min(useful, worker_num or useful),
        num_dataloader_threads=num_dataloader_threads,
        validation_freq=validation_freq,
        checkpoint_freq=checkpoint_freq,
        seed=seed,
        deterministic=_is_deterministic(environ),
    )


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`, of any type that has them.

    Raises:
        TypeError, ValueError: it is none; the message names it.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        kind = type(value).__name__
        raise TypeError(f"{name}={value!r} is a {kind}; give a whole number of at least {least}")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name}={value} is below {least}; give a whole number of at least {least}")
    return number


def worker_limit(worker_num: int | None, hardware_spec: Any) -> int | None:
    """How many executors the program asks for, if it does; ``hardware_spec`` wins over ``worker_num``.

    Raises:
        TypeError, ValueError: a ``hardware_spec`` that is no mapping, or whose number makes no sense.
    """
    if hardware_spec is not None and not isinstance(hardware_spec, Mapping):
        kind = type(hardware_spec).__name__
        raise TypeError(f'hardware_spec is a {kind}; give a dict such as {{"nodes": {{"num_nodes": 2}}}}')
    nodes = (hardware_spec or {}).get("nodes")
    number = nodes.get("num_nodes") if isinstance(nodes, Mapping) else None
    return worker_num if number is None else whole("num_nodes of hardware_spec", number, 1)


def executors_wanted(scale_up: ScaleUp, epoch: int, max_workers: int) -> int | None:
    """What `scaleup_function` answers before `epoch`; None, with a warning, when it makes no sense."""
    answer: Any = scale_up(epoch, max_workers)
    if isinstance(answer, int) and not isinstance(answer, bool) and 1 <= answer <= max_workers:
        return answer
    warnings.warn(
        f"scaleup_function({epoch}, {max_workers}) returned {answer!r}, which is no whole number from 1 "
        f"to {max_workers}; the number of executors stays as it is",
        stacklevel=2,
    )
    return None


def _is_deterministic(environ: Mapping[str, str]) -> bool:
    value = environ.get(DETERMINISTIC_VARIABLE, "1")
    if value not in ("0", "1"):
        raise ValueError(f"{DETERMINISTIC_VARIABLE}={value!r} is neither 0 nor 1; set it to one of them")
    return value == "1"
