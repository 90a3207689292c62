"""The world that edt-launch assigns, without a connection."""

import pytest

from edt_hvd.world import assigned_world
from edt_hvd.world.assigned_world import AssignedWorld
from edt_messages import messages
from edt_messages.messages import Assign, Message


class Clock:
    """Stands in for the module `time`."""

    now = 100.0
    used = 2.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.used


class Line:
    """A launcher that assigns after four seconds, of which this process has worked for half a one."""

    def __init__(self, clock: Clock, answer: Assign | None) -> None:
        self.clock = clock
        self.answer = answer
        self.sent: list[Message] = []

    def wait_for_assignment(self, progress: int) -> Assign | None:
        self.clock.now += 4.0
        self.clock.used += 0.5
        return self.answer

    def send(self, message: Message) -> None:
        self.sent.append(message)


ASSIGN = Assign(
    generation=1, rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1, host="a", port=1
)


@pytest.mark.parametrize("generation, answer, count", [(0, ASSIGN, 1), (0, None, 0), (1, ASSIGN, 0)])
def test_the_cost_of_the_first_wait_is_reported(
    monkeypatch: pytest.MonkeyPatch, generation: int, answer: Assign | None, count: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(assigned_world, "time", clock)
    monkeypatch.setattr(assigned_world, "private_memory", lambda: 7)
    world = AssignedWorld({"EDT_COORDINATOR": "a:1", "EDT_TOKEN": "t", "EDT_WORKER": "0"})
    line = Line(clock, answer)
    monkeypatch.setattr(world, "launcher", line)
    world.generation = generation
    assert world._wait_for_assignment(progress=0) is answer
    assert line.sent == [messages.Standby(4.0, 0.5, 7)] * count
