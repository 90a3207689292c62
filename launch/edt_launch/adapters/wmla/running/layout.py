"""Where everything of a WMLA job is, and what its processes are called: the one place that spells both."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.files.walking import names
from edt_launch.core.run_dir import RunDir


@dataclass(frozen=True)
class ResultDir(RunDir):
    """The output directory of a WMLA job, RESULT_DIR: what `edt-launch` writes, and what programs expect."""

    @property
    def identity(self) -> Path:
        """The job's names, which it keeps when it goes on: `environment.Identity` as JSON."""
        return self.run / "wmla" / "identity.json"

    @property
    def trainings(self) -> Path:
        """The folder of what driver and executors share of each training."""
        return self.run / "wmla"

    @property
    def default_data(self) -> Path:
        """DATA_DIR of a job that names none."""
        return self.root / "data"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that programs find."""
        return self.code, self.log, self.checkpoint, self.train, self.trainings, self.processes

    @property
    def processes(self) -> Path:
        """The folder of what each process has printed."""
        return self.run / "processes"

    def printed(self, process: str, stream: str) -> Path:
        """What the process of that id has printed to `stream`, "stdout" or "stderr", byte by byte."""
        return self.processes / process / stream

    def make(self, process: str, host: str) -> None:
        """Make what the process of that id has to itself; raises `OSError` if it cannot be made."""
        self.log_dir(process, host).mkdir(parents=True, exist_ok=True)
        for stream in ("stdout", "stderr"):
            path = self.printed(process, stream)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def log_dir(self, process: str, host: str) -> Path:
        """LOG_DIR of the process of that id."""
        return self.log / f"{process}.{host}"

    def log_dirs(self, process: str) -> list[Path]:
        """Every LOG_DIR that the process of that id has had, on whatever host, in order."""
        return [self.log / name for name in names(self.log) if name.startswith(f"{process}.")]

    def checkpoints(self, training: int) -> Path:
        """The folder of the checkpoints of the script's `training`-th call of train(), from 1."""
        return self.checkpoint if training == 1 else self.checkpoint / f"training-{training}"


def executor_id(exec_id: str, number: int) -> str:
    """The id of a job's `number`-th executor or worker, from 1: that of serial number `number` - 1."""
    return f"{number}-{uuid.uuid5(uuid.NAMESPACE_OID, f'{exec_id}/{number}')}"


def driver_id(stamp: str, unique: uuid.UUID) -> str:
    """The id of a driver that was started at `stamp`, as YYYYMMDDhhmmss."""
    return f"driver-{stamp}-0001-{unique}"
