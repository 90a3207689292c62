"""A world whose workers need nothing to find one another."""

from collections.abc import Iterable, Sequence

from edt_launch.membership.protocol import Assignment, Worker


class SimulatedWorld:
    """Keeps what it is asked for. The port of generation g is 1000 + g."""

    def __init__(self) -> None:
        self.generations: dict[int, tuple[Assignment, ...]] = {}
        self.aborted = 0
        self.is_closed = False

    def variables(self, worker: Worker, hosts: Iterable[str]) -> dict[str, str]:
        return {"SIMULATED_WORKER": str(worker.id)}

    def open(self, generation: int, assignments: Sequence[Assignment]) -> tuple[str, int]:
        self.generations[generation] = tuple(assignments)
        return "127.0.0.1", 1000 + generation

    def abort(self) -> None:
        self.aborted += 1

    def close(self) -> None:
        self.is_closed = True
