"""The files that driver and executors of a job share, below ``RESULT_DIR/run/wmla``.

==============================  ================  ======================================================
start.json                      by the driver     how the script was started
training-N/train.json           by the driver     what the script's N-th call of `train` trains
training-N/results.K.jsonl      by a coordinator  what came of every mini-batch; one file a generation
training-N/outcome.pt           by a coordinator  what the training leaves behind for the script
training-N/initial.pt           by a kernel       what the training of a notebook begins with
==============================  ================  ======================================================
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edt_hvd.wmla.atomic_file import replacing
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.random_states import RandomStates


@dataclass(frozen=True)
class Start:
    """How the script of a job was started.

    Attributes:
        script: its absolute path.
        arguments: of its command line, after the path.
        directory: the working directory.
        engines: the most executors that the job might have when it was started first.
        random_states: before the first statement, when it was started first.
    """

    script: str
    arguments: tuple[str, ...]
    directory: str
    engines: int
    random_states: RandomStates


@dataclass(frozen=True)
class JobDir:
    """The folder of one job."""

    path: Path

    @classmethod
    def of(cls, environ: Mapping[str, str] = os.environ) -> "JobDir":
        """The folder of this process's job.

        Raises:
            WmlaError: there is no ``RESULT_DIR``.
        """
        if "RESULT_DIR" not in environ:
            raise WmlaError("RESULT_DIR is not set; edt-launch --wmla sets it for the script it starts")
        return cls(Path(os.path.abspath(environ["RESULT_DIR"]), "run", "wmla"))

    def begin(self, start: Start) -> Start:
        """Note how the script is started; a job that goes on keeps its random states and engines.

        Raises:
            WmlaError: an earlier note cannot be read.
        """
        if self._start.exists():
            first = self.read()
            start = replace(start, random_states=first.random_states, engines=first.engines)
        self.path.mkdir(parents=True, exist_ok=True)
        content = {**vars(start), "random_states": start.random_states.as_json()}
        with replacing(self._start) as file:
            file.write(json.dumps(content).encode())
        return start

    def read(self) -> Start:
        """What `begin` has noted.

        Raises:
            WmlaError: there is nothing, or it cannot be read.
        """
        try:
            content: dict[str, Any] = json.loads(self._start.read_bytes())
            states = RandomStates.from_json(content["random_states"])
            arguments = tuple(content["arguments"])
            return Start(**{**content, "arguments": arguments, "random_states": states})
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise WmlaError(
                f"{self._start} cannot be read ({type(error).__name__}: {error}); without it the job cannot "
                "go on: start it with another result folder"
            ) from error

    def training(self, number: int) -> "TrainingDir":
        """The folder of the script's `number`-th call of `train`, from 1."""
        return TrainingDir(self.path / f"training-{number}")

    @property
    def _start(self) -> Path:
        return self.path / "start.json"


@dataclass(frozen=True)
class TrainingDir:
    """The folder of one call of `train`."""

    path: Path

    @property
    def number(self) -> int:
        """Which call of `train` it is."""
        return int(self.path.name.rpartition("-")[2])

    @property
    def job(self) -> JobDir:
        """The folder of its job."""
        return JobDir(self.path.parent)

    @property
    def outcome(self) -> Path:
        """The file of what the training leaves behind: there once it is done."""
        return self.path / "outcome.pt"

    @property
    def initial(self) -> Path:
        """The file of what the training begins with, if that is not what the script makes."""
        return self.path / "initial.pt"

    def begin(self, call: Mapping[str, str]) -> None:
        """Make the folder anew, for a training that `train_call.describe` describes."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True)
        with replacing(self.path / "train.json") as file:
            file.write(json.dumps(dict(call)).encode())

    def call(self) -> Mapping[str, str]:
        """The description that `begin` was given."""
        content: dict[str, str] = json.loads((self.path / "train.json").read_bytes())
        return content
