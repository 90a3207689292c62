"""The recorder: what a job computes, bit by bit, for a program that compares jobs, such as ``edt verify``.

The environment asks for it:

====================  =================================================================================
EDT_RECORD            folder for the records; every worker appends to its own files there
EDT_RECORD_STEPS      number of the commit after which training ends, with exit code 0; 0: it does not
EDT_RECORD_HOLD       numbers of commits, "2,4", at which workers wait until a membership is announced
EDT_RECORD_OPERATORS  number of the commit up to which the operators are traced, from the one before it on
====================  =================================================================================

``record.<pid>.jsonl`` has a line for the state that training began with (step 0) and one for every commit::

    {"step": 1, "rank": 0, "size": 2, "parameters": {"model.0.weight": "1c5b..."}, "buffers": {...},
     "optimizer": {...}, "loss": {...}, "values": {...}}

with a digest for every tensor and value. The line of step 0 also names the state's objects and the
reductions. ``operators.<pid>.jsonl`` has a line for every operator of a traced step, see `OperatorTrace`;
the samples of a micro-batch and the reduced gradients are in it as ``data`` and ``gradient``. While the
workers wait at commit n there is a file ``holding.<n>``.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import horovod.torch as hvd
import torch
from typing_extensions import override

from edt_hvd.debug.operators import Operator, OperatorTrace
from edt_hvd.digests import digest
from edt_hvd.observing import Observer, Values
from edt_hvd.reduction.optimizer import reduction_of
from edt_hvd.world import world
from edt_hvd.world.assigned_world import AssignedWorld


@dataclass(frozen=True)
class Options:
    """What to record; see the module.

    Attributes:
        folder: where the records go.
        steps: commit after which training ends; 0: none.
        holds: commits at which workers wait for another membership.
        traced: commit up to which operators are traced, from the one before it; 0: none.
    """

    folder: Path
    steps: int = 0
    holds: frozenset[int] = frozenset()
    traced: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Options":
        """The options of an environment with ``EDT_RECORD``.

        Raises:
            ValueError: a variable is invalid.
        """
        folder = Path(environ["EDT_RECORD"])
        if not folder.is_dir():
            raise ValueError(f"EDT_RECORD={folder}: no such folder; create it on every host")
        steps, traced = (_commit(environ, f"EDT_RECORD_{name}") for name in ("STEPS", "OPERATORS"))
        return cls(folder, steps, _commits(environ, "EDT_RECORD_HOLD"), traced)


def _commit(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name) or "0"
    if not text.strip().isdecimal():
        raise ValueError(f"{name}={text}: expected the number of a commit, such as 6, or 0 for none")
    return int(text)


def _commits(environ: Mapping[str, str], name: str) -> frozenset[int]:
    text = environ.get(name, "")
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(map(str.isdecimal, parts)):
        raise ValueError(f"{name}={text}: expected numbers of commits, such as 2,4, or nothing")
    return frozenset(map(int, parts))


class Recorder(Observer):
    """Records the first state that is synced, and the steps towards its commits."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._files: dict[str, IO[str]] = {}
        self._state: object = None
        self._values: Values = {}
        self._progress = 0
        self._loss: dict[str, str] = {}
        self._trace = OperatorTrace(self._write_operator)
        self._traced_at: dict[str, Any] = {}
        self._update = contextlib.ExitStack()

    @override
    def synced(self, state: object, progress: int, values: Values) -> None:
        self._update.close()
        if self._state is None:
            self._state = state
            if progress == 0:
                kinds = {name: type(value).__name__ for name, value in values.items()}
                reductions = sorted({kind for value in values.values() if (kind := reduction_of(value))})
                self._record(0, values, {"holds": kinds, "reductions": reductions})
        if self._state is state:
            self._progress, self._values = progress, values

    @override
    def committed(self, state: object, progress: int, values: Values) -> None:
        """Record the commit, and end or hold the worker if that was asked for.

        Raises:
            SystemExit: with code 0, after the last commit to record.
        """
        self._update.close()
        if state is not self._state:
            return
        self._progress, self._values = progress, values
        self._record(progress, values, {})
        current = world.current()
        if progress == self._options.steps:
            if isinstance(current, AssignedWorld):
                current.finish()
            raise SystemExit(0)
        if progress in self._options.holds and isinstance(current, AssignedWorld):
            (self._options.folder / f"holding.{progress}").touch()
            current.launcher.wait_until_wanted(current.generation + 1)

    @override
    @contextlib.contextmanager
    def micro_batch(self, epoch: int, position: int, data: Any) -> Iterator[None]:
        if not self._is_traced():
            yield
            return
        self._traced_at = {"epoch": epoch, "position": position, "phase": "forward"}
        self._write_operator(Operator("data", "", digest(data)))
        self._trace.name(_parameters(self._values) | _buffers(self._values))
        with self._trace:
            yield

    @override
    def before_backward(self) -> None:
        self._traced_at["phase"] = "backward"

    @override
    def reduced(self, loss: float) -> None:
        self._loss = {"step.loss": digest(loss)}
        if not self._is_traced():
            return
        self._traced_at = {"phase": "update"}
        for name, parameter in _parameters(self._values).items():
            self._write_operator(Operator("gradient", name, digest(parameter.grad)))
        self._update.enter_context(self._trace)

    def _is_traced(self) -> bool:
        return self._progress + 1 == self._options.traced

    def _record(self, step: int, values: Values, more: dict[str, Any]) -> None:
        line = {"step": step, "rank": hvd.rank(), "size": hvd.size(), **_digests(values), "loss": self._loss}
        self._append("record", line | more)

    def _write_operator(self, operator: Operator) -> None:
        self._append("operators", {"rank": hvd.rank(), **self._traced_at, **asdict(operator)})

    def _append(self, kind: str, line: dict[str, Any]) -> None:
        self._file(kind).write(json.dumps(line) + "\n")

    def _file(self, kind: str) -> IO[str]:
        if kind not in self._files:
            path = self._options.folder / f"{kind}.{os.getpid()}.jsonl"
            self._files[kind] = path.open("a", buffering=1)
        return self._files[kind]

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()


def _parameters(values: Values, method: str = "named_parameters") -> dict[str, torch.Tensor]:
    models = [(name, value) for name, value in values.items() if isinstance(value, torch.nn.Module)]
    return {f"{name}.{key}": found for name, model in models for key, found in getattr(model, method)()}


def _buffers(values: Values) -> dict[str, torch.Tensor]:
    return _parameters(values, "named_buffers")


def _digests(values: Values) -> dict[str, dict[str, str]]:
    """A digest of every tensor and value of a state, by what it is and its name."""
    found: dict[str, dict[str, Any]] = {
        "parameters": _parameters(values),
        "buffers": _buffers(values),
        "optimizer": {},
        "values": {},
    }
    names = {parameter: name for name, parameter in found["parameters"].items()}
    for name, value in values.items():
        if isinstance(value, torch.nn.Module):
            continue
        if isinstance(value, torch.optim.Optimizer):
            found["optimizer"] |= _of_optimizer(name, value, names)
        elif hasattr(value, "state_dict"):
            found["values"] |= {f"{name}.{key}": part for key, part in value.state_dict().items()}
        else:
            found["values"][name] = value
    return {kind: {name: digest(value) for name, value in part.items()} for kind, part in found.items()}


def _of_optimizer(
    name: str, optimizer: torch.optim.Optimizer, names: Mapping[torch.Tensor, str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, group in enumerate(optimizer.param_groups):
        options = {key: value for key, value in group.items() if key != "params"}
        found |= {f"{name}.param_groups[{number}].{key}": value for key, value in options.items()}
        for index, parameter in enumerate(group["params"]):
            of = names.get(parameter, f"{number}.{index}")
            state = optimizer.state.get(parameter, {})
            found |= {f"{name}.{key}[{of}]": value for key, value in state.items()}
    return found
