"""How the workers of a generation find one another: the interface, of which the driver knows nothing more."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from edt_launch.membership.protocol import Assignment, Worker


class World(Protocol):
    """Forms one generation after another of a job's workers. All methods are called from one thread."""

    def variables(self, worker: Worker, hosts: Iterable[str]) -> dict[str, str]:
        """What a worker that is to be started finds in its environment; its rank is not known yet.

        `hosts` are those of all workers.
        """

    def open(self, generation: int, assignments: Sequence[Assignment]) -> tuple[str, int]:
        """Let a generation form, larger than the last one; returns the address and port where it meets."""

    def abort(self) -> None:
        """The newest generation will not form: its members are not to wait for one another."""

    def close(self) -> None:
        """No generation forms any more."""
