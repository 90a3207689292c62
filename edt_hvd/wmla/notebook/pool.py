"""Trains for a notebook's kernel in the pool: ``python -m edt_hvd.wmla.notebook.pool FOLDER NAME``.

To the kernel this process is edt-launch: it takes the same messages from a socket. It submits a job for a
training, sends the kernel the results that the job's log has, and fetches what the training leaves behind.
When the kernel interrupts the training, or is gone, it stops the job. What goes wrong then is in its exit
code and what it prints, as nobody reads its messages any more.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edt_hvd.wmla import launching
from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.notebook import relay
from edt_hvd.wmla.notebook.folders import LOG
from edt_hvd.wmla.notebook.remote import MARK, OUTCOME, SCRIPT
from edt_messages import wmla

EDT = (sys.executable, "-P", "-m", "edt_launch.cli")


UNREACHABLE = 3
"""The exit code of `edt` where the service does not answer."""

RETRY = 5.0
"""Seconds between two attempts to stop a job."""

PERSISTENCE = 24 * 3600.0
"""Seconds for which a service that does not answer is asked to stop a job that nobody wants any more."""


class RefusedError(Exception):
    """A command of `edt` has failed; the message is what it says."""


class AwayError(RefusedError):
    """The service does not answer."""


def main() -> None:
    """Serve the kernel whose socket the environment names, until it is gone."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    with socket.socket(fileno=int(os.environ.pop(launching.VARIABLE))) as kernel:
        requests = Requests(kernel)
        while (request := requests.next()) is not None:
            if isinstance(request, wmla.Train):
                exit_code, message = _run(Job(folder, name, request, requests))
                if not requests.send(wmla.Ended(request.number, exit_code, message)):
                    sys.exit(message or 0)


def _run(job: "Job") -> tuple[int, str]:
    try:
        return job.run()
    except RefusedError as error:
        return 1, str(error)


class Requests:
    """The kernel's messages."""

    def __init__(self, kernel: socket.socket) -> None:
        self._kernel = kernel
        self._received = b""

    def fileno(self) -> int:
        """For `select`; messages that have been received with an earlier one are not seen by it."""
        return self._kernel.fileno()

    @property
    def has_one(self) -> bool:
        """Whether `next` has one without waiting."""
        return b"\n" in self._received

    def send(self, message: wmla.Message) -> bool:
        """Whether the kernel is still there: it has not interrupted the training."""
        try:
            self._kernel.sendall(wmla.encode(message))
        except BrokenPipeError:
            return False
        return True

    def next(self) -> wmla.Message | None:
        """Wait for one; None when the kernel is gone."""
        while not self.has_one:
            try:
                part = self._kernel.recv(65536)
            except ConnectionResetError:  # it has not read the last message
                part = b""
            if not part:
                return None
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return wmla.decode(line)


@dataclass
class Job:
    """One training as a job of the pool."""

    folder: Path
    name: str
    request: wmla.Train
    requests: Requests

    def run(self) -> tuple[int, str]:
        """Its exit code, and why it has failed; raises `RefusedError`."""
        job = self._submit()
        try:
            is_wanted = self._follow(job)
        except BaseException:
            stop(job)
            raise
        if not is_wanted:
            stop(job)
            return 0, ""
        shown = json.loads(_edt("show", job, "--json"))
        if shown["state"] != "succeeded":
            return 1, f"job {job} has {shown['state']}: {shown.get('failure') or f'see edt logs {job}'}"
        self._fetch(job)
        return 0, ""

    @property
    def _training(self) -> TrainingDir:
        return JobDir.of({"RESULT_DIR": str(self.folder / "result")}).training(self.request.number)

    def _submit(self) -> str:
        code, training = self.folder / "notebook", self._training
        shutil.copyfile(training.program, code / training.program.name)
        data = ["--data-dir", os.environ["DATA_DIR"]] if "DATA_DIR" in os.environ else []
        words = ["--framework", "edtPyTorch", "--max", str(self.request.max_workers), "--name", self.name]
        words += [*data, "--env", f"{relay.VARIABLE}={relay.POOL}", "--env", "MPLBACKEND=Agg"]
        command = [SCRIPT, str(self.request.max_workers), self.request.program[-1]]
        job: str = json.loads(_edt("submit", *words, "--code", str(code), "--json", "--", *command))["id"]
        return job

    def _follow(self, job: str) -> bool:
        """Send the kernel the results of the job until it has ended; whether it still wants the job."""
        with subprocess.Popen([*EDT, "logs", "--follow", job], stdout=subprocess.PIPE) as logs:
            assert logs.stdout is not None
            try:
                for line in lines_until(logs.stdout.fileno(), self.requests):
                    if line is None and not self._is_to_go_on(job):
                        return False
                    if line is not None and MARK.encode() in line:
                        self.requests.send(
                            wmla.ExecutorMessage(
                                self.request.number, line.partition(MARK.encode())[2].decode()
                            )
                        )
                logs.wait()
            finally:
                logs.kill()  # else it would be waited for until the job ends
        if logs.returncode != 0:
            raise RefusedError(f"job {job} cannot be followed any more; {self.folder / LOG} says why")
        return True

    def _is_to_go_on(self, job: str) -> bool:
        """Do what the kernel asks for next; whether it still wants the job."""
        request = self.requests.next()
        if request is None or isinstance(request, wmla.Cancel):
            return False
        if isinstance(request, wmla.Limit):
            try:
                _edt("set", job, "--max", str(request.max_workers))
            except RefusedError as error:  # it has just ended, or the service is away: it trains all the same
                print(f"job {job} keeps its size: {error}", file=sys.stderr, flush=True)
        return True

    def _fetch(self, job: str) -> None:
        archive = self.folder / "results.tar.gz"
        _edt("results", job, "model", "--output", str(archive))
        result = self.folder / "result"
        with tarfile.open(archive) as packed:
            packed.extractall(result, filter="data")
        archive.unlink()
        os.replace(result / OUTCOME, self._training.outcome)
        (result / OUTCOME).parent.rmdir()


def lines_until(output: int, requests: Requests) -> Iterator[bytes | None]:
    """Lines of a file descriptor until its end, and None whenever the kernel has sent something."""
    rest = b""
    while True:
        if requests.has_one:
            yield None
            continue
        ready, _, _ = select.select([output, requests.fileno()], [], [])
        if requests.fileno() in ready:
            yield None
        if output in ready:
            block = os.read(output, 65536)
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            yield from lines


def stop(
    job: str,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Stop a job; where the service does not answer, ask it again until it does, for `PERSISTENCE` at most.

    Raises:
        RefusedError: the service refuses, or has not answered for so long.
    """
    until = clock() + PERSISTENCE
    while True:
        try:
            _edt("stop", job)
        except AwayError as error:
            if clock() >= until:
                raise
            print(f"job {job} is still to be stopped: {error}", file=sys.stderr, flush=True)
            pause(RETRY)
        else:
            return


def _edt(*words: str) -> str:
    done = subprocess.run([*EDT, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        kind = AwayError if done.returncode == UNREACHABLE else RefusedError
        raise kind(f"edt {words[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
