"""The world of a job under edt-launch."""

import time
from collections.abc import Mapping
from typing import NoReturn

from typing_extensions import override

from edt_hvd.world import heartbeat, preemption
from edt_hvd.world.activity import private_memory
from edt_hvd.world.control import Launcher
from edt_hvd.world.elastic_world import ElasticWorld
from edt_messages import messages
from edt_messages.messages import Assign


class AssignedWorld(ElasticWorld):
    """A world that edt-launch assigns.

    Nothing here blocks before `join`: a newcomer imports, builds its model and reaches the elastic function
    while the others still train.
    """

    launcher: Launcher

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__()
        token = environ["EDT_WORKER_TOKEN"]
        self.launcher = Launcher(environ["EDT_COORDINATOR"], token, int(environ["EDT_WORKER"]))
        self._environ = environ

    @property
    def max_size(self) -> int:
        """The job's ``--max-np``."""
        return int(self._environ["EDT_MAX_NP"])

    @property
    @override
    def slot(self) -> int:
        return int(self._environ["EDT_SLOT"])

    @property
    @override
    def wanted_generation(self) -> int:
        return self.launcher.wanted_generation

    def start(self) -> None:
        """Connect to the launcher, and treat SIGTERM as a preemption notice."""
        self.launcher.on_stop = self._note_announced
        self.launcher.on_cut = self._note_broken
        self.launcher.connect()
        heartbeat.start(self.launcher)
        preemption.listen()

    @override
    def synced(self) -> None:
        self.launcher.send(messages.Synced())

    @override
    def bring_checkpoint(self, folder: str) -> None:
        self.launcher.wait_for_checkpoint(folder)

    def finish(self) -> None:
        """End this worker's part in the training, and notify the launcher."""
        preemption.stop_listening()
        super().finish()
        self.launcher.send(messages.Done())

    def _wait_for_assignment(self, progress: int) -> Assign | None:
        """Wait for the next assignment; report what the wait for the first one has cost."""
        if self.generation > 0:
            return self.launcher.wait_for_assignment(progress)
        since, processor, private = time.monotonic(), time.process_time(), private_memory()
        assignment = self.launcher.wait_for_assignment(progress)
        if assignment is not None:
            waited, used = time.monotonic() - since, time.process_time() - processor
            self.launcher.send(messages.Standby(waited, used, private))
        return assignment

    def _leave(self) -> NoReturn:
        if self.launcher.must_save:
            self.save_state()
        self.launcher.close()
        super()._leave()
