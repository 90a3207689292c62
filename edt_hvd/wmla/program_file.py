"""Hands a training from the driver to the executors, in a file."""

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from edt_hvd import torch_file
from edt_hvd.wmla.atomic_file import replacing
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.job_dir import TrainingDir
from edt_hvd.wmla.pickling import by_value
from edt_hvd.wmla.pickling.module_parts import cannot_be_unpickled
from edt_hvd.wmla.pickling.random_states import RandomStates
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.train_config import TrainConfig

_environment = dict(os.environ)
"""As it was when this was imported."""


@dataclass(frozen=True)
class Settings:
    """Of the process that calls `train`. Executors have them as soon as they are unpickled.

    Attributes:
        arguments: `sys.argv`.
        path: `sys.path`; empty: the executor's own.
        directory: the working directory; empty: the executor's own.
        environment: the variables that the script has set; None for those that it has removed.
        threads: of torch, where the script has set a number.
        dtype: torch's default.
        precision: of products of float32 matrices.
    """

    arguments: list[str]
    path: list[str]
    directory: str
    environment: Mapping[str, str | None]
    threads: int | None
    dtype: str
    precision: str

    @classmethod
    def now(cls) -> "Settings":
        """Of this process."""
        names = {*os.environ, *_environment}
        changed = {
            name: os.environ.get(name) for name in names if os.environ.get(name) != _environment.get(name)
        }
        return cls(
            arguments=list(sys.argv),
            path=list(sys.path),
            directory=os.getcwd(),
            environment=changed,
            threads=getattr(torch.set_num_threads, "chosen", None),
            dtype=str(torch.get_default_dtype()).removeprefix("torch."),
            precision=torch.get_float32_matmul_precision(),
        )

    def __reduce__(self) -> Any:
        return _applied, (asdict(self),)

    def apply(self) -> None:
        """Give them to this process.

        Raises:
            WmlaError: this host does not have the working directory.
        """
        sys.argv[:] = self.arguments
        sys.path[:] = self.path or sys.path
        if self.directory and not os.path.isdir(self.directory):
            raise WmlaError(
                f"{os.uname().nodename} does not have {self.directory}, the working directory of the script; "
                "call train() in a folder that all hosts see"
            )
        if self.directory:
            os.chdir(self.directory)
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        torch.set_default_dtype(getattr(torch, self.dtype))
        torch.set_float32_matmul_precision(self.precision)


def _applied(values: dict[str, Any]) -> Settings:
    settings = Settings(**values)
    settings.apply()
    return settings


def write(folder: TrainingDir, program: Program, config: TrainConfig, settings: Settings) -> str:
    """Write a training; returns the digest of the program.

    Raises:
        UnpicklableError: a part of it cannot be pickled.
    """
    given = {field.name: getattr(program, field.name) for field in fields(program)}
    # The settings come first: they say from where the rest is imported.
    content = {"settings": settings, **given, "config": config, "random_states": RandomStates.now()}
    with replacing(folder.program) as file:
        torch_file.save(content, file, pickle_module=by_value, pickle_protocol=5)
    return _digest(folder.program)


def read(folder: TrainingDir, digest: str) -> tuple[Program, TrainConfig]:
    """The training that `write` has written; this process has its settings and random states then.

    Raises:
        WmlaError: the program is another one, or this host does not see it.
        UnpicklableError: a part of it cannot be unpickled.
    """
    if not folder.program.exists():
        raise WmlaError(
            f"{os.uname().nodename} does not see {folder.program}: all hosts of a WMLA program must see its "
            "result folder; give a shared one with --result-dir"
        )
    found = _digest(folder.program)
    if found != digest:
        raise WmlaError(
            f"{folder.program} has the digest {found} here, {digest} in the driver: the file was changed, or "
            "this host sees another one under that name"
        )
    # The job's driver wrote it; it has the program's functions.
    content: dict[str, Any]
    try:
        content, _ = torch.load(
            folder.program, map_location="cpu", weights_only=False, pickle_module=by_value
        )
    except Exception as error:  # objects raise what they like when they are unpickled
        if type(error) is WmlaError:  # of the settings
            raise
        raise cannot_be_unpickled(error) from error
    _, config, states = map(content.pop, ("settings", "config", "random_states"))
    program = Program(**content)
    states.restore()
    torch.cuda.manual_seed_all(torch.initial_seed())  # the driver has none; takes effect once CUDA is used
    return program, config


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
