"""Where everything of one `FabricModel.train` is that driver and executors share, and what the driver writes.

Below ``RESULT_DIR/run/wmla/training-N``, for the script's N-th call of `train`:

==================  ================  ==================================================================
start.json          by the driver     how the script was started, and how it trains
results.K.jsonl     by a coordinator  what came of every mini-batch; one file a generation, K from 1
model/train         by the driver     the final model and its optimizer's state, for later calls of `train`
==================  ================  ==================================================================
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import saving


@dataclass(frozen=True)
class Start:
    """How the driver's script was started.

    Attributes:
        script: its absolute path.
        arguments: of its command line, after the path.
        directory: the working directory.
        random_states: before its first statement.
    """

    script: str
    arguments: tuple[str, ...]
    directory: str
    random_states: RandomStates


@dataclass(frozen=True)
class TrainingDir:
    """The folder of one training."""

    path: Path

    @classmethod
    def of(cls, number: int, environ: Mapping[str, str] = os.environ) -> "TrainingDir":
        """The folder of the script's `number`-th call of `train`, from 1.

        Raises:
            WmlaError: there is no ``RESULT_DIR``.
        """
        if "RESULT_DIR" not in environ:
            raise WmlaError("RESULT_DIR is not set; edt-launch --wmla sets it for the script it starts")
        return cls(Path(os.path.abspath(environ["RESULT_DIR"]), "run", "wmla", f"training-{number}"))

    @property
    def number(self) -> int:
        """Which call of `train` it is."""
        return int(self.path.name.rpartition("-")[2])

    @property
    def model_dir(self) -> Path:
        """The folder of the final model."""
        return self.path / "model"

    def earlier(self, number: int) -> "TrainingDir":
        """The folder of another call of `train` of the same job."""
        return TrainingDir(self.path.with_name(f"training-{number}"))

    def begin(self, start: Start, config: TrainConfig) -> None:
        """Make the folder anew, with what executors need to know."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True)
        content = {
            "script": start.script,
            "arguments": start.arguments,
            "directory": start.directory,
            "random_states": start.random_states.as_json(),
            "config": asdict(config),
        }
        _write(self.path / "start.json", json.dumps(content))

    def read(self) -> tuple[Start, TrainConfig]:
        """What `begin` has written."""
        content: dict[str, Any] = json.loads((self.path / "start.json").read_text(encoding="utf-8"))
        states = RandomStates.from_json(content["random_states"])
        start = Start(content["script"], tuple(content["arguments"]), content["directory"], states)
        return start, TrainConfig(**content["config"])

    def keep_final(self, model_dir: Path) -> None:
        """Keep the final model, which the next call of `train` replaces in `model_dir`."""
        for path_of in (saving.model_path, saving.optimizer_path):
            kept = path_of(self.model_dir, saving.FINAL)
            kept.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path_of(model_dir, saving.FINAL), kept)
            except OSError:  # another file system, or one without links
                shutil.copyfile(path_of(model_dir, saving.FINAL), kept)


def _write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
