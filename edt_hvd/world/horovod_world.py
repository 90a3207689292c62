"""The world of a job under ``horovodrun --host-discovery-script``, which Horovod's own driver assigns.

Horovod starts a worker with its first assignment in the environment. Whoever leaves a world asks the driver's
HTTP server for the next one, and is answered when every member of that world has asked or has ended. The
driver looks at the hosts once a second and tells rank 0 that they have changed. Its source is
``horovod/runner/elastic`` of 0.28.1, which leaves gaps that are closed here:

- A change that comes before rank 0 listens is dropped. So workers listen before they form their first world,
  and when all of them have just been started, they form it a second time: the driver then takes the hosts as
  they are by now.
- Changes are told apart by the whole second in which they were noticed, and one that comes while a world is
  being formed is forgotten. Here they are counted, until the driver is asked for an assignment.
- Whoever is not assigned any more is ended by an exception in C++. Here it leaves with exit code 0. If its
  slot were assigned again before the driver has noticed its end, the driver would take that end for the new
  worker's; so a world lasts for at least `LEAST_SECONDS`.
- A worker that cannot enter a world, because another one starts too slowly or has died, is ended by an
  exception. Here it asks for another assignment.
"""

import http.client
import threading
import time
from collections.abc import Callable, Iterable, MutableMapping

import horovod.torch as hvd
import torch
from horovod.common.elastic import notification_manager
from horovod.common.exceptions import HorovodInternalError

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world.control import Assignment
from edt_hvd.world.elastic_world import ATTEMPTS, ElasticWorld
from edt_hvd.world.report_file import ReportFile

LEAST_SECONDS = 2.0
"""A world is not left for a change of the hosts before it is that old."""

_PLACE = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
"""What an assignment consists of, in the driver's order."""


class HorovodWorld(ElasticWorld):
    """A world that Horovod's elastic driver assigns.

    Args:
        environ: of this process. ``HOROVOD_ELASTIC`` is removed from it: with that, Horovod would ask for
            assignments itself.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        super().__init__()
        if "EDT_REPORTS" in environ:
            self.launcher = ReportFile(environ["EDT_REPORTS"])
        self._environ = environ
        del environ["HOROVOD_ELASTIC"]
        self._driver = f"{environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}"
        self._changes = 0
        """How often the driver has said that the hosts have changed."""
        self._included = 0
        """How many of these changes the present assignment takes into account."""
        self._formed_at = 0.0
        self._has_asked = False
        """Whether the driver has been asked for an assignment, so that no change before that was missed."""
        self._changes_lock = threading.Lock()
        self._callbacks: list[Callable[[int], None]] = []

    @property
    def max_size(self) -> int:
        """``EDT_MAX_NP``, which `edt-launch --horovodrun` sets; else the present size: Horovod does not say.

        Raises:
            ValueError: the variable is no positive whole number.
        """
        if not self.knows_max_size:
            return int(hvd.size())
        value = self._environ["EDT_MAX_NP"]
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"EDT_MAX_NP={value!r}: expected the job's largest number of workers, 1 or more")
        return int(value)

    @property
    def knows_max_size(self) -> bool:
        """Whether somebody has told it."""
        return "EDT_MAX_NP" in self._environ

    @property
    def neighbours(self) -> int:
        """The workers on this host at present."""
        return int(hvd.local_size())

    @property
    def slot(self) -> int:
        """This worker's number on its host."""
        return int(self._environ["HOROVOD_LOCAL_RANK"])

    @property
    def wanted_generation(self) -> int:
        """The generation after the present one, if the hosts have changed."""
        return self.generation + (self._changes > self._included)

    @property
    def stop_wanted(self) -> bool:
        """Whether the hosts have changed since this world, which is old enough to be left, was assigned."""
        is_over = self.finished or time.monotonic() < self._formed_at + LEAST_SECONDS
        return not is_over and super().stop_wanted

    def start(self) -> None:
        """Listen for changes of the hosts, and form the world that this worker was started for."""
        notification_manager.init()
        notification_manager.register_listener(self)
        if hvd.is_initialized():  # by the script
            self.generation = 1
        elif not self._form(self._assignment(self._environ[f"HOROVOD_{name.upper()}"] for name in _PLACE)):
            self.rejoin(progress=0)

    def on_stop(self, callback: Callable[[int], None]) -> None:
        """Call `callback(generation)` whenever the driver says that the hosts have changed."""
        self._callbacks.append(callback)

    def on_hosts_updated(self, timestamp: int, update: int) -> None:
        """Count a change. Called by Horovod, in a thread of its own."""
        with self._changes_lock:
            self._changes += 1
        for callback in self._callbacks:
            callback(self.wanted_generation)

    def enter(self) -> None:
        """Form the world again if no change has been listened for until now. A collective."""
        super().enter()
        self._catch_up(progress=0)

    def rejoin(self, progress: int) -> None:
        """Leave the present world and enter the next one. A collective of that one."""
        super().rejoin(progress)
        if self.entered:
            self._catch_up(progress)

    def _catch_up(self, progress: int) -> None:
        """Agree with rank 0, to which the driver speaks, that no change has been missed."""
        for _ in range(ATTEMPTS):
            try:
                missed = hvd.broadcast(
                    torch.tensor([int(not self._has_asked)]), root_rank=0, name="edt.missed"
                )
            except HorovodInternalError:  # a member is lost
                self.abandon()
            else:
                if not missed.item():
                    self._report()
                    return
            super().rejoin(progress)
        raise HorovodInternalError(f"the workers could not agree on a world in {ATTEMPTS} attempts")

    def _report(self) -> None:
        if self.launcher is not None and hvd.rank() == 0:
            self.launcher.send("world", generation=self.generation, size=hvd.size())

    def _form(self, assignment: Assignment) -> bool:
        formed = super()._form(assignment)
        self._formed_at = time.monotonic()
        return formed

    def _wait_for_assignment(self, progress: int) -> Assignment | None:
        """Ask the driver, which answers when it has heard of all workers.

        Raises:
            CoordinatorLostError: there is no answer.
        """
        self._included, self._has_asked = self._changes, True
        connection = http.client.HTTPConnection(self._driver)
        path = f"/rank_and_size/{self._environ['HOROVOD_HOSTNAME']}:{self.slot}"
        try:
            connection.request("GET", path)
            answer = connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise CoordinatorLostError(self._driver, str(error) or type(error).__name__) from error
        finally:
            connection.close()
        assignment = self._assignment(answer.split(","))
        return assignment if assignment.rank >= 0 else None

    def _assignment(self, place: Iterable[str]) -> Assignment:
        port = int(self._driver.rpartition(":")[2])
        return Assignment(self.generation + 1, **dict(zip(_PLACE, map(int, place), strict=True)), port=port)
