"""WMLA programs under `edt-launch --wmla`, and what they leave behind."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import edt_hvd.wmla
from edt_hvd.digests import digest
from harness import ElasticJob
from wmla_programs import IMAGES, ONCE, Program, make_pictures, pack_pictures

PACE = 0.5
"""Seconds that one worker needs for an effective batch while the data's storage is slow."""

Digests = dict[str, str]


class WmlaJob(ElasticJob):
    """A model directory under edt-launch; its data can be made slow, so that it lasts until it is resized."""

    def __init__(self, folder: Path, data: Path, max_np: int = 4) -> None:
        super().__init__(folder, max_np=max_np)
        self.data = data
        self.out = self.results
        self.program: Program | None = None

    def start_program(
        self,
        program: Program,
        *arguments: str,
        environment: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
    ) -> "WmlaJob":
        self.program = program
        script = program.bring(self.folder / "brought")
        self.run(
            script, *arguments, environment=dict(program.environment) | (environment or {}), options=options
        )
        return self

    def run(
        self, script: Path, *arguments: str, environment: dict[str, str], options: tuple[str, ...] = ()
    ) -> None:
        command = [sys.executable, "-m", "edt_launch.launcher.command", *self.sizes, *options, "--wmla"]
        if self.allocation.exists():
            command += ["--allocation", str(self.allocation)]
        command += ["--data-dir", str(self.data), "--result-dir", str(self.results), str(script)]
        with (self.folder / "stdout").open("wb") as stdout, (self.folder / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, "--", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=os.environ | environment,
            )

    def logged(self) -> list[str]:
        """Lines that the driver's logger has written by now."""
        files = (self.results / "log").glob("driver-*/stdout")
        return [line for file in files for line in file.read_text().splitlines()]

    def slow(self, program: Program, pace: float = PACE) -> None:
        beside = self.data / "slow.new"
        beside.write_text(str(pace / (program.batch_size * program.interval)))
        beside.rename(self.data / "slow")

    def until_size(self, size: int) -> None:
        """Wait for a size, with storage that gets slower: its program must not end before."""
        assert self.program is not None
        program, logged, pace = self.program, len(self.logged()), PACE

        def is_of_size() -> bool:
            nonlocal logged, pace
            if len(self.logged()) >= logged + program.interval:
                logged, pace = len(self.logged()), 2 * pace
                self.slow(program, pace)
            return self.size() == size

        self.until(is_of_size)
        self.slow(program)

    def hurry(self) -> None:
        (self.data / "slow").unlink(missing_ok=True)

    def finish(self) -> "Trained":
        """What a job has left that has ended well."""
        self.hurry()
        assert self.end() == 0, f"{self.stdout}\n{self.stderr}"
        assert self.survivors() == []
        return Trained(self.results, self.stdout, self.events())


@dataclass(frozen=True)
class Trained:
    """A job's files after its end."""

    folder: Path
    printed: str
    events: list[dict[str, Any]]

    @property
    def sizes(self) -> list[int]:
        return [event["size"] for event in self.events if event["event"] == "world"]

    @property
    def models(self) -> Path:
        return self.folder / "model" / "train"

    @property
    def driver_logs(self) -> Path:
        (folder,) = (self.folder / "log").glob("driver-*")
        return folder

    @property
    def executor_logs(self) -> dict[int, Path]:
        """Log folders of the executors by their number."""
        found = (path for path in (self.folder / "log").iterdir() if path.is_dir())
        return {int(path.name.split("-")[0]): path for path in found if path.name[0].isdigit()}

    @property
    def driver_printed(self) -> str:
        (file,) = (self.folder / "run" / "processes").glob("driver-*/stdout")
        return file.read_text()

    @property
    def log(self) -> str:
        """What the script's logger has written."""
        return (self.driver_logs / "stdout").read_text()

    def rows(self, kind: str = "Train") -> list[list[str]]:
        """The logger's lines of a kind, without their times."""
        return log_rows(self.log, kind)

    def digests(self) -> Digests:
        """Of every tensor of the final model, and of the optimizer's state."""
        return model_digests(self.models)


@dataclass(frozen=True)
class Plain:
    """What a run without edt-launch has left: the folder of its models, and what its logger has written."""

    models: Path
    log: str


def log_rows(log: str, kind: str = "Train") -> list[list[str]]:
    """A log's lines of a kind, without their times."""
    return [line.split(",\t")[2:] for line in log.splitlines() if f"] {kind}," in line]


def model_digests(folder: Path, which: str = "final") -> Digests:
    model = torch.load(folder / f"model_epoch_{which}.pth", weights_only=True)
    optimizer = torch.load(folder / f"model_epoch_{which}_optimizer_state.pth", weights_only=True)
    assert all(type(value) is torch.Tensor and value.device.type == "cpu" for value in model.values())
    found = {f"model/{name}": digest(value) for name, value in model.items()}
    for index, state in optimizer["state"].items():
        found |= {f"optimizer/{index}/{name}": digest(value) for name, value in state.items()}
    return found | {"optimizer/groups": digest(optimizer["param_groups"])}


def job_in(folder: Path, program: Program) -> WmlaJob:
    """A job of its own, with the data that its program expects to find."""
    data = folder / "data of all users"
    data.mkdir(parents=True)
    if program.name == IMAGES.name:
        make_pictures(data)
    if program.name == ONCE.name:
        pack_pictures(data)
    return WmlaJob(folder / "a job's folder", data)


def train_plainly(folder: Path, program: Program, *arguments: str) -> Plain:
    """A whole run in one process without edt-launch; with more arguments.

    As under python, but that torchvision can be imported first.
    """
    job = job_in(folder, program)
    fabric = Path(edt_hvd.wmla.__path__[0], "fabric_home")
    libraries = [str(fabric / "libs" / name) for name in ("dli_utils", "fabric.zip")]
    script = program.bring(job.results / "_submitted_code")
    (job.folder / "log").mkdir()
    environment = {
        "DATA_DIR": str(job.data),
        "FABRIC_HOME": str(fabric),
        "LOG_DIR": str(job.folder / "log"),
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join([*libraries, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "RESULT_DIR": str(job.results),
    }
    done = subprocess.run(
        [sys.executable, "-m", "edt_hvd.wmla.script", str(script), *program.arguments, *arguments],
        cwd=script.parent,
        env=os.environ | environment | dict(program.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log = job.folder / "log" / "stdout"
    return Plain(job.results / "model" / "train", log.read_text())


def train_resized(job: WmlaJob, program: Program, sizes: Sequence[int] = (2, 3, 1)) -> Trained:
    """A run with two workers, then three, then one, or with other numbers."""
    job.slow(program)
    job.allocate(sizes[0])
    job.start_program(program, *program.arguments)
    for size in sizes:
        job.allocate(size)
        job.until_size(size)
        done = len(job.logged())
        job.until(lambda done=done: len(job.logged()) > done + program.interval)
    return job.finish()
