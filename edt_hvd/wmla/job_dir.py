"""The files that driver and executors of a job share, below ``RESULT_DIR/run/wmla``.

==========================  ================  =========================================================
engines                     by the driver     the most executors that the job might have at first
training-N/program          by the driver     what the script's N-th call of `train` trains
training-N/outcome.pt       by a coordinator  what the training leaves behind for the script
==========================  ================  =========================================================
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edt_hvd.wmla.atomic_file import replacing
from edt_hvd.wmla.errors import WmlaError


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

    def engines(self, max_workers: int) -> int:
        """The most executors that the job might have when it asked first: steps depend on it."""
        path = self.path / "engines"
        if not path.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(str(max_workers).encode())
        return int(path.read_text())

    def training(self, number: int) -> "TrainingDir":
        """The folder of the script's `number`-th call of `train`, from 1."""
        return TrainingDir(self.path / f"training-{number}")


@dataclass(frozen=True)
class TrainingDir:
    """The folder of one call of `train`."""

    path: Path

    @property
    def number(self) -> int:
        """Which call of `train` it is."""
        return int(self.path.name.rpartition("-")[2])

    @property
    def program(self) -> Path:
        """The file of what is trained."""
        return self.path / "program"

    @property
    def outcome(self) -> Path:
        """The file of what the training leaves behind: there once it is done."""
        return self.path / "outcome.pt"

    def begin(self) -> None:
        """Make the folder anew."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True)
