"""A job as its launcher describes it, on this host: where its files, its folders and its interpreter are."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from edt_launch.agent import protocol
from edt_launch.agent.system import devices
from edt_launch.agent.transfer.places import Places, merged
from edt_launch.agent.warm import forkable
from edt_launch.agent.worker import Worker
from edt_launch.core.system import ports
from edt_messages.runs import BROUGHT

if TYPE_CHECKING:
    from edt_launch.agent.transfer.files import Files

SNAPSHOTS = "EDT_SNAPSHOTS"
"""Names a folder in memory in which workers keep what is to outlive them, but not the job."""


class LocalJob:
    """What all workers of a job have in common on this host.

    Attributes:
        setup: what the launcher says about it.
        environment: the workers' variables.
        command: what they run.
        directory: where they start; None for where this process is, as on a host without the folder.
        files: None if this host sees the output directory. Otherwise they come before `prepare`.

    Raises:
        OSError: no folder for the job can be made.
    """

    def __init__(self, setup: protocol.Setup, send: Callable[[protocol.Report], None]) -> None:
        self.setup = setup
        self.environment = dict(setup.environment)
        self.command = setup.command
        self.directory: str | None = None
        self._places = Places({})
        if setup.inherits:
            pythons = (setup.python, sys.executable)
            self.environment = merged(os.environ, setup.environment, pythons, os.path.isdir)
        self.files = self._files(send)
        if self.files is not None and setup.output is not None:
            self._places = Places({setup.output: str(self.files.output)})

    def _files(self, send: Callable[[protocol.Report], None]) -> "Files | None":
        """A folder for the job, if this host does not see the output directory."""
        setup = self.setup
        if setup.output is None:
            return None
        from edt_launch.agent.transfer import files  # it takes long to import, and few hosts need it

        if files.sees(os.path.join(setup.output, protocol.NONCE), setup.nonce):
            return None
        return files.Files(self.environment, setup.environment["HOROVOD_HOSTNAME"], send)

    def take(self, order: protocol.FileOrder) -> bool:
        """Do something about files; whether it was the last thing before `prepare`.

        Raises:
            ProtocolError: there are none of this host.
        """
        if self.files is None:
            raise protocol.ProtocolError(
                f"{type(order).__name__}, though this host sees the output directory"
            )
        match order:
            case protocol.Code(folder):
                code = {folder: str(self.files.code)} if folder else {}
                self._places = Places({**self._places.moved, **code})
                return self.files.have_code(order)
            case protocol.Put():
                self.files.put(order)
            case protocol.Piece():
                self.files.take(order)
            case protocol.Fetch():
                self.files.fetch(order)
            case protocol.List():
                self.files.list()
        return False

    def prepare(self) -> None:
        """Everything is here that workers need: find out how they are started.

        Raises:
            StartError: the ports that they may listen on cannot be had.
        """
        self.directory = self._directory_here()
        self.command = self._here(self.setup.command)
        self.environment = self._places.environment(self.environment)
        self.environment |= ports.preloaded(self.environment)
        if self.files is not None:
            self.environment |= {"PWD": self.directory or os.getcwd(), BROUGHT: "1"}

    def forkable_program(self) -> forkable.Program | None:
        """What a warm server can run of it; None if every worker has to be executed."""
        if not self.setup.forks or sys.platform != "linux":
            return None
        program = forkable.parse(self.command)
        if program is None or program.script is None:
            return program
        # A script that is not there is the interpreter's to report.
        return program if os.path.isfile(os.path.join(self.directory or "", program.script)) else None

    def worker(self, order: protocol.Start) -> Worker:
        """A worker that is to be started."""
        own = self._places.environment(order.environment)
        return Worker({**self.environment, **own}, self._here(order.command) or self.command)

    def lacks(self, worker: Worker) -> str | None:
        """What the host lacks that the worker needs; None if nothing is known to be missing."""
        host, given = worker.environment.get("HOROVOD_HOSTNAME", ""), worker.environment.get("EDT_DEVICE")
        if given is not None and (problem := devices.problem(host, given, devices.count())) is not None:
            return problem
        program = forkable.parse(worker.command) if self.setup.inherits else None
        if program is None or program.script is None:
            return None
        script = os.path.join(self.directory or "", program.script)
        if os.path.isfile(script):
            return None
        folder = self.setup.directory
        if self.directory is None and PurePath(folder, program.script).is_relative_to(folder):
            return f"{host} has no folder {folder}: share it, or copy it to that host"
        return f"{host} has no {script}: put it on that host, too"

    def why_not_run(self, program: str, error: OSError | ValueError) -> str:
        """What it means that a worker's program cannot be executed."""
        path = os.path.join(self.directory or "", program)
        if isinstance(error, FileNotFoundError) and "/" in program and os.path.exists(path):
            return "the interpreter that it names in its first line is not there"
        return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

    def close(self) -> None:
        """Remove what the job has on this host."""
        if folder := self.environment.get(SNAPSHOTS):
            shutil.rmtree(folder, ignore_errors=True)  # it is there only if a worker has made it
        if self.files is not None:
            self.files.close()

    def _directory_here(self) -> str | None:
        here = self._places.path(self.setup.directory)
        if not self.setup.inherits or os.path.isdir(here):
            return here
        if self.files is not None and self.files.code.is_dir():
            return str(self.files.code)
        return None

    def _here(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command as this host runs it."""
        if not self.setup.inherits:
            return command
        own = tuple(sys.executable if word == self.setup.python else word for word in command[:1])
        rest = self._places.words(command[1:], self.setup.directory, os.path.exists)
        return (*own, *rest)
