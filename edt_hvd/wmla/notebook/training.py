"""`train()` in the kernel of a notebook: starts edt-launch, and is the driver of the training."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from edt_hvd.wmla import driving
from edt_hvd.wmla.errors import TrainingFailedError
from edt_hvd.wmla.job_dir import JobDir
from edt_hvd.wmla.launching import VARIABLE, Launcher
from edt_hvd.wmla.notebook import relay
from edt_hvd.wmla.notebook.folders import LOG, own_folder
from edt_hvd.wmla.notebook.relay import Kernel
from edt_hvd.wmla.notebook.remote import SCRIPT
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.program_file import Settings
from edt_hvd.wmla.train_config import ScaleUp, TrainConfig
from edt_hvd.wmla.training import saving

GRACE = 30.0
"""Seconds that edt-launch has to end the executors of a training that is over."""

STOPPING = 10.0
"""Seconds that the service has to be told that a job is not wanted any more."""

OF_JOBS = ("DATA_DIR", "DATA_PATH", "LOG_DIR")
"""Variables that edt-launch sets for its jobs, and that executors are to find as they are in the kernel."""

QUOTED = 15
"""Lines of edt-launch's log that an error shows."""


def train(
    program: Program,
    config: TrainConfig,
    make_result_log: driving.MakeResultLog,
    scale_up: ScaleUp | None,
) -> None:
    """Have executors train, with the kernel as their driver.

    Args:
        program, config, make_result_log, scale_up: as for `driving.train_in_executors`.

    Raises:
        UnpicklableError: a part of the program cannot be sent to executors.
        TrainingFailedError: they ended without success, or edt-launch could not be started.
    """
    folder, is_pooled = _folder(), bool(os.environ.get("EDT_URL"))
    code = folder / "notebook"
    shutil.rmtree(code, ignore_errors=True)
    code.mkdir()
    script = code / SCRIPT
    script.touch()
    with _pooled(folder) if is_pooled else _launched(folder, script, config.max_workers) as launcher:
        driving.train_in_executors(
            program,
            config,
            make_result_log,
            launcher,
            scale_up,
            settings=_settings(is_pooled),
            script=str(script),
            job=JobDir.of({"RESULT_DIR": str(folder / "result")}),
        )
    shutil.copytree(folder / "result" / "model", saving.model_dir(), dirs_exist_ok=True)


def _settings(is_pooled: bool) -> Settings:
    """The kernel's; folders and variables are another machine's in the pool."""
    settings = Settings.now()
    if is_pooled:
        return replace(settings, path=[], directory="", environment={})
    kept = {name: os.environ.get(name) for name in OF_JOBS}
    return replace(settings, environment={**settings.environment, **kept})


_trainings = itertools.count(1)


@cache
def _folder() -> Path:
    """The folder of this kernel's trainings, which goes with it."""
    return own_folder(Path(tempfile.gettempdir()))


@cache
def _short_folder() -> Path:
    """That of its sockets, whose paths are short."""
    return own_folder(Path("/tmp"))


@contextmanager
def _pooled(folder: Path) -> Iterator[Launcher]:
    """Have a process play edt-launch that submits a job, and stops it unless it has ended."""
    ours, theirs = socket.socketpair()
    name = f"{folder.name.removeprefix('edt-')}-{next(_trainings)}"
    print(f"Training in the pool as job {name}; where it stands: edt why {name}", flush=True)
    with theirs:
        process = _start(
            folder,
            ["edt_hvd.wmla.notebook.pool", str(folder), name],
            os.environ | {VARIABLE: str(theirs.fileno())},
            [theirs.fileno()],
        )
    launcher = Launcher(ours)
    try:
        yield launcher
    finally:
        launcher.close()
        _leave(process, folder / LOG, name)


def _start(
    folder: Path, module: list[str], environ: Mapping[str, str], descriptors: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a module with its arguments, which prints into the folder's log. Ctrl-C is the kernel's."""
    with (folder / LOG).open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", *module],
            env=environ,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _leave(process: subprocess.Popen[bytes], log: Path, name: str) -> None:
    """Wait until the job has ended or is told to; another Ctrl-C does not wait. Say what is left to do."""
    advice = f"if it still runs later: edt stop {name}"
    again = "the service is asked until it answers"
    try:
        exit_code = process.wait(STOPPING)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:  # it goes on trying
        print(f"job {name} is not known to have stopped yet; {again}; {advice}", file=sys.stderr, flush=True)
        if isinstance(error, KeyboardInterrupt):
            raise
        return
    if exit_code != 0:
        reason = "".join(log.read_text(errors="replace").splitlines()[-1:])
        print(f"job {name} may not have been stopped: {reason}; {advice}", file=sys.stderr, flush=True)


@contextmanager
def _launched(folder: Path, script: Path, max_workers: int) -> Iterator[Launcher]:
    """Run edt-launch, and leave no process of it behind."""
    address = _short_folder() / f"kernel-{next(_trainings)}"
    log = folder / LOG
    kernel = Kernel(address)
    try:
        process = _start(folder, _command(script, folder / "result", max_workers), _environment(address))

        def check() -> None:
            if process.poll() is not None:
                lines = log.read_text(errors="replace").splitlines()[-QUOTED:]
                raise TrainingFailedError("\n  ".join(["edt-launch did not start the training:", *lines]))

        try:
            launcher = kernel.accept(check)
            try:
                yield launcher
            finally:
                launcher.close()
            kernel.done()
        except BaseException:
            process.terminate()
            raise
        finally:
            kernel.close()
            _end(process)
    finally:
        kernel.close()
        address.unlink(missing_ok=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait until edt-launch has ended all of its processes; another Ctrl-C kills it, and them with it."""
    try:
        process.wait(GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, KeyboardInterrupt):
            raise


def _command(script: Path, result: Path, max_workers: int) -> list[str]:
    options = ["--view", "plain", "--max-np", str(max_workers), "--wmla", "--result-dir", str(result)]
    return ["edt_launch.launcher.command", *options, str(script)]


def _environment(address: Path) -> dict[str, str]:
    own = {relay.VARIABLE: str(address), "MPLBACKEND": "Agg"}  # executors draw nothing into the notebook
    return {name: value for name, value in os.environ.items() if name != "RESULT_DIR"} | own
