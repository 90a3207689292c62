"""The world of a job under ``horovodrun --host-discovery-script``, which Horovod's own driver assigns.

Horovod starts a worker with its first assignment in the environment. A worker that leaves a world asks the
driver's HTTP server for the next assignment, and is answered when every member of that world has asked or has
ended. The driver looks at the hosts once a second and notifies rank 0 when they have changed. Its source is
``horovod/runner/elastic`` of 0.28.1, which leaves gaps that are closed here:

- A change that comes before rank 0 listens is dropped. So workers listen before they form their first world,
  and when all of them have just been started, they form it a second time: the driver then takes the hosts as
  they are by now.
- Two changes within a second count as one, and one that comes while a world is being formed is forgotten.
  Here changes are counted until the driver is asked for an assignment.
- A worker that is not assigned any more dies of an exception in C++. Here it leaves with exit code 0. If its
  slot were assigned again before the driver has noticed its end, the driver would take that end for the new
  worker's; so a world lasts for at least `LEAST_SECONDS`.
- A worker that cannot enter a world, because another one starts too slowly or has died, is ended by an
  exception. Here members wait for one another before they enter, and ask for another assignment if one fails.
- A host counts as one that has the state as soon as it is assigned, although its workers may never have
  joined. If all that had the state leave before, these end with an error, or go on from a checkpoint.
"""

import math
import threading
import time
from collections.abc import Iterable, MutableMapping
from typing import NoReturn

import horovod.torch as hvd
import torch
from horovod.common.elastic import notification_manager
from horovod.common.exceptions import HorovodInternalError
from typing_extensions import override

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world.elastic_world import ATTEMPTS, ElasticWorld
from edt_hvd.world.horovodrun.horovod_driver import HorovodDriver
from edt_hvd.world.report_file import ReportFile
from edt_messages import messages
from edt_messages.messages import Assign

LEAST_SECONDS = 2.0
"""A world is not left for a change of the hosts before it is that old."""

PATIENCE = 120.0
"""Seconds for which members of a world wait for others to start; ``EDT_JOIN_TIMEOUT`` in the environment."""

POLL = 0.05
"""Seconds between two looks whether another member is there."""

ARRIVED, GAVE_UP = "here", "gone"
"""What the members of an assignment publish: that they are about to enter the world, or have given up."""

_SCOPE = "edt.members"

_NAMES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
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
        address, port = (environ[f"HOROVOD_GLOO_RENDEZVOUS_{name}"] for name in ("ADDR", "PORT"))
        self._driver = HorovodDriver(f"{address}:{port}", environ.get("HOROVOD_RENDEZVOUS_TOKEN"))
        self._patience = _seconds(environ.get("EDT_JOIN_TIMEOUT", str(PATIENCE)))
        self._has_state = False
        """Whether this worker has the state of the training."""
        self._others_trained = False
        """Whether a worker that has given up waiting for this one had the state."""
        self._has_failed = False
        """Whether the last world could not be formed."""
        self._changes = 0
        """How often the driver has said that the hosts have changed."""
        self._included = 0
        """How many of these changes the present assignment takes into account."""
        self._formed_at = 0.0
        self._has_asked = False
        """Whether the driver has been asked for an assignment, so that no change before that was missed."""
        self._changes_lock = threading.Lock()

    @property
    def max_size(self) -> int:
        """``EDT_MAX_NP``, which `edt-launch --horovodrun` sets; else the present size: Horovod does not say.

        Raises:
            ValueError: the variable is no positive whole number.
        """
        if "EDT_MAX_NP" not in self._environ:
            return int(hvd.size())
        value = self._environ["EDT_MAX_NP"]
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"EDT_MAX_NP={value!r}: expected the job's largest number of workers, 1 or more")
        return int(value)

    @property
    @override
    def slot(self) -> int:
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
        """Listen for changes of the hosts, and form the world that this worker was started for.

        Raises:
            CoordinatorLostError: the driver does not answer.
            RuntimeError: the script has formed it already, while the others wait for this worker here.
        """
        if hvd.is_initialized():
            raise RuntimeError(
                "hvd.init() came before `import edt_hvd`; import edt_hvd at the top of the script"
            )
        try:
            notification_manager.init()
        except RuntimeError as error:  # Horovod's client says so of any failure of its request
            raise CoordinatorLostError(self._driver.address, str(error), "horovodrun") from error
        notification_manager.register_listener(self)
        if not self._form(self._assignment(self._environ[f"HOROVOD_{name.upper()}"] for name in _NAMES)):
            self.rejoin(progress=0)

    def on_hosts_updated(self, timestamp: int, update: int) -> None:
        """Count a change. Called by Horovod, in a thread of its own."""
        with self._changes_lock:
            self._changes += 1
        self._note_announced(self.wanted_generation)

    @override
    def synced(self) -> None:
        self._has_state = True

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
            self.launcher.send(messages.WorldFormed(self.generation, hvd.size()))

    # Forming a world.

    def _form(self, assignment: Assign) -> bool:
        """Enter the assigned world, when all of its members are there; False when one does not make it."""
        formed = self._wait_for_members(assignment) and super()._form(assignment)
        self._formed_at = time.monotonic()
        self._has_failed = not formed
        if not formed:
            self._announce(assignment, GAVE_UP)
        return formed

    def _wait_for_members(self, assignment: Assign) -> bool:
        """Wait for all members of an assignment; False when one has given up, or does not come in time.

        Gloo would wait for 30 seconds only, which is less than some scripts take to start.
        """
        self._announce(assignment, ARRIVED)
        deadline = time.monotonic() + self._patience
        somebody_has_state = self._has_state
        for rank in range(assignment.size):
            while (said := self._driver.get(_SCOPE, str(rank))) is None:
                if time.monotonic() > deadline:
                    return False
                time.sleep(POLL)
            what, _, has_state = said.partition(" ")
            if what == GAVE_UP:
                self._others_trained = self._others_trained or bool(has_state)
                return False
            somebody_has_state = somebody_has_state or bool(has_state)
        self.has_lost_state = self._others_trained and not somebody_has_state
        return True

    def _announce(self, assignment: Assign, what: str) -> None:
        """Tell the others of an assignment whether this worker is there, and whether it has the state."""
        self._driver.put(_SCOPE, str(assignment.rank), f"{what} state" if self._has_state else what)

    def _wait_for_assignment(self, progress: int) -> Assign | None:
        """Ask the driver, which answers when it has heard of all workers.

        Raises:
            CoordinatorLostError: there is no answer.
        """
        self._included, self._has_asked = self._changes, True
        answer = self._driver.next_assignment(self._environ["HOROVOD_HOSTNAME"], self.slot)
        assignment = self._assignment(answer.split(","))
        return assignment if assignment.rank >= 0 else None

    def _assignment(self, answer: Iterable[str]) -> Assign:
        numbers = dict(zip(_NAMES, map(int, answer), strict=True))
        host, generation = self._environ["HOROVOD_HOSTNAME"], self.generation + 1
        return Assign(**numbers, host=host, generation=generation, port=self._driver.port, address="")

    def _leave(self) -> NoReturn:
        if self._has_failed and self._has_state:  # who comes next may not have the state
            self.save_state()
        super()._leave()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 1 <= seconds < math.inf:
        raise ValueError(f"EDT_JOIN_TIMEOUT={text!r}: expected a number of seconds, 1 or more")
    return seconds
