"""The training itself, in every executor: an elastic function over the program's own model and functions.

A mini-batch of the program is a micro-batch of `edt_hvd`, whatever the number of executors, and an effective
batch is one optimizer step. What came of the mini-batches is exchanged before the optimizer steps: a worker
lost until then costs nothing but the step, and the coordinator can emit all of it.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import edt_hvd
from edt_hvd.wmla.logs.console import Print
from edt_hvd.wmla.logs.loggers import Logger
from edt_hvd.wmla.logs.result_log import by_name
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import (
    Begun,
    EpochDone,
    Means,
    Message,
    MiniBatch,
    StepDone,
    TrainingDone,
    Validated,
    cut,
)
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import outcome, saving
from edt_hvd.wmla.training.data import (
    inputs_and_target,
    make_datasets,
    moved,
    result_dir,
    training_loader,
)
from edt_hvd.wmla.training.hooks import Hooks
from edt_hvd.wmla.training.option_check import check_options
from edt_hvd.wmla.training.train_step import train_step
from edt_hvd.wmla.training.validating import validation

Emit = Callable[[Message], None]
"""Takes the results of an executor. Every one emits all of them, in the same order."""

_distributed: "weakref.WeakSet[torch.optim.Optimizer]" = weakref.WeakSet()


class Engine:
    """Trains one program in one executor.

    Args:
        program: on the CPU; trained in place.
        config: how.
        emit: is given the results.
        out: prints a line of this executor's progress.
        outcome_path: where the outcome is saved for other processes; None for none.
    """

    def __init__(
        self,
        program: Program,
        config: TrainConfig,
        emit: Emit,
        out: Print,
        outcome_path: Path | None = None,
    ) -> None:
        self._program = program
        self._config = config
        self._emit = emit
        self._out = out
        self._outcome_path = outcome_path
        initialize(config.deterministic)
        self._datasets = make_datasets(program.datasets_function, result_dir())
        self._device = edt_hvd.device()
        move(program, self._device)
        if program.optimizer not in _distributed:
            edt_hvd.DistributedOptimizer(program.optimizer, program.model)
            _distributed.add(program.optimizer)
        self._loader = training_loader(self._datasets.train, config, program.fn_batch_collate)
        self._validation = validation(program, self._datasets.test, config)
        self._train_step = train_step(program, self._loader)
        self._hooks = Hooks(
            program.user_callback, program.model, program.optimizer, config.epochs, program.objects
        )
        self._means = Means()
        self._worker_log = WorkerLog(Logger(program.worker_logger), program.metric_names, out)
        self._folder = saving.model_dir()

    def run(self) -> None:
        """Train to the end; may end with `SystemExit` when this executor is not needed any more."""
        self._hooks.train_begin()
        self._worker_log.begin()
        state = edt_hvd.TorchState(
            model=self._program.model,
            optimizer=self._program.optimizer,
            loader=self._loader,
            hooks=self._hooks,
            means=self._means,
            epoch=0,
            begun=0,
            has_ended=False,
        )
        edt_hvd.elastic(self._train)(state)
        self._worker_log.end()

    def _train(self, state: edt_hvd.TorchState) -> None:
        self._emit(self._plan())
        edt_hvd.report(total_steps=self._config.epochs * len(self._loader))
        while state.epoch < self._config.epochs:
            if state.begun <= state.epoch:
                self._hooks.epoch_begin(state.epoch)
                self._check_options("on_epoch_begin", state.epoch)
                state.begun = state.epoch + 1
            self._program.model.to(self._device).train()
            for step in state.loader:
                self._step(step)
                state.optimizer.step()
                state.commit()
            self._end_epoch(state.epoch)
            state.epoch += 1
            state.commit()
        if not state.has_ended:  # else it goes on from a checkpoint of the end
            self._save(saving.FINAL)
            self._hooks.train_end()
            state.has_ended = True
        self._leave_behind()
        self._emit(TrainingDone())

    def _plan(self) -> Begun:
        batch_size, samples = self._config.batch_size, len(self._datasets.train)
        full, rest = divmod(samples, self._config.effective_batch_size)
        per_step = self._config.batches_per_step
        batches = full * per_step + -(-rest // batch_size)
        return Begun(batches, per_step, self._means.state_dict())

    def _step(self, step: edt_hvd.Step) -> None:
        """Compute this executor's mini-batches of a step and have their gradients reduced."""
        found: dict[int, tuple[int, Any]] = {}
        for data in step:
            at = step.micro_batch
            found[at.index] = len(at.positions), self._train_step(step, data)
        own = {index: outcome.read(samples) for index, (samples, outcome) in found.items()}
        batches = gathered(own)
        edt_hvd.report(**self._values(mean(batches)))
        for part in cut(StepDone(step.epoch, step.index, edt_hvd.size(), batches)):
            self._emit(part)
        for batch in batches:
            self._means.add(step.epoch, batch)
        for _, batch in sorted(own.items()):
            self._worker_log.take(step.epoch, batch)

    def _values(self, batch: MiniBatch) -> dict[str, float]:
        """What is reported of a mini-batch, by name."""
        own = zip(self._program.metric_names, batch.metrics, strict=True)
        return {**dict(own), "loss": batch.loss, "accuracy": batch.accuracy}

    def _end_epoch(self, epoch: int) -> None:
        if self._config.saves_after(epoch):
            self._save(epoch + 1)
        if self._validation is not None and self._config.validates_after(epoch):
            self._program.model.eval()
            with torch.no_grad():
                result = self._validation(epoch)
            edt_hvd.report(**{f"val_{name}": value for name, value in self._values(result).items()})
            self._emit(Validated(epoch, result))
        saves = self._config.saves_after(epoch) or self._config.is_last(epoch)
        self._hooks.epoch_end(epoch, saves and edt_hvd.is_coordinator())
        self._check_options("on_epoch_end", epoch)
        self._emit(EpochDone(epoch))

    def _check_options(self, hook: str, epoch: int) -> None:
        if self._program.user_callback:
            check_options(self._program.optimizer, f"{hook} of epoch {epoch}")

    def _save(self, epoch: int | str) -> None:
        """Have the coordinator save the model; everybody waits, so that others can do it when it is lost."""
        if edt_hvd.is_coordinator():
            saving.save(self._folder, epoch, self._program.model, self._program.optimizer)
        edt_hvd.barrier()

    def _leave_behind(self) -> None:
        """Have the coordinator save what follows from the training; everybody waits, as in `_save`."""
        if edt_hvd.is_coordinator():
            if self._program.enable_onnx:
                saving.export_onnx(saving.onnx_path(self._folder), self._program.model, self._first_inputs())
            if self._outcome_path is not None:
                outcome.save(self._outcome_path, self._program, self._hooks)
        edt_hvd.barrier()

    def _first_inputs(self) -> tuple[Any, ...]:
        """The inputs of a small batch, where the model is."""
        dataset, collate = self._datasets.train, self._program.fn_batch_collate
        samples = [dataset[index] for index in range(min(2, len(dataset)))]
        batch = (collate or torch.utils.data.default_collate)(samples)
        return inputs_and_target(moved(batch, next(self._program.model.parameters()).device))[0]


class WorkerLog:
    """What one executor prints of its own mini-batches, and tells the program's worker logger."""

    def __init__(self, logger: Logger, names: tuple[str, ...], out: Print) -> None:
        self._logger = logger
        self._names = names
        self._out = out
        self._means = Means()
        self._iteration = 0

    def begin(self) -> None:
        """The training begins."""
        self._out("--------START TRAINING--------")
        self._logger.begin()

    def take(self, epoch: int, batch: MiniBatch) -> None:
        """One more mini-batch: its loss, and the accuracy over this executor's of the epoch."""
        self._iteration += 1
        running = self._means.add(epoch, batch)
        self._out(f"batches :{self._iteration} {batch.loss}")
        self._out(f"Iteration {self._iteration}: tag train_accuracy, simple_value {running.accuracy / 100}")
        self._logger.train(by_name(batch, self._names), self._iteration, epoch)

    def end(self) -> None:
        """The training has ended."""
        self._logger.end()
        self._out(f"--------END TRAINING: completed {self._iteration} iterations --------")


def initialize(deterministic: bool) -> None:
    """Initialize `edt_hvd`; operators without a deterministic version warn: programs may use them."""
    edt_hvd.init(deterministic=deterministic)
    if deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)


def gathered(own: Mapping[int, MiniBatch]) -> tuple[MiniBatch, ...]:
    """All mini-batches of a step by their numbers, from those that each executor has. A collective."""
    by_number = {number: batch for part in edt_hvd.gather(own) for number, batch in part.items()}
    return tuple(batch for _, batch in sorted(by_number.items()))


def mean(batches: Sequence[MiniBatch]) -> MiniBatch:
    """Mini-batches as one: means over all of their samples."""
    means = Means()
    for batch in batches[:-1]:
        means.add(0, batch)
    return means.add(0, batches[-1])


def move(program: Program, device: torch.device) -> None:
    """Move model, loss function and optimizer state to the device."""
    program.model.to(device)
    if isinstance(program.loss_function, torch.nn.Module):
        program.loss_function.to(device)
    if program.optimizer.state:  # loading moves it to where the parameters are
        program.optimizer.load_state_dict(program.optimizer.state_dict())
