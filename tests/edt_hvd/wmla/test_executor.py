import contextlib
import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edt_hvd.wmla.channel import Address, Listener, Sender
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.executor import ToDriver, main, program_of
from edt_hvd.wmla.handing import payload
from edt_hvd.wmla.handing.payload import Payload
from edt_hvd.wmla.logs.journal import Journal, ToLogger
from edt_hvd.wmla.logs.loggers import Logger
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import Begun, EpochDone, Message, MiniBatch, StepDone
from edt_hvd.wmla.schedule import Schedule
from small_programs import RememberingNames


class Recording:
    """A sender that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.waited: list[int] = []
        self.finished = False

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def wait(self, most: int) -> None:
        self.waited.append(most)

    def finish(self) -> None:
        self.finished = True


def test_who_takes_over_tells_what_the_driver_may_have_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    leads = False
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: leads)
    sender = Recording()
    outlet = ToDriver(sender)  # type: ignore[arg-type]
    plan = Begun(1, 1, 1)
    outlet.tell(plan)
    outlet.tell(EpochDone(0))
    assert sender.sent == []
    leads = True
    outlet.tell(EpochDone(1))
    outlet.tell(EpochDone(2))
    assert sender.sent == [plan, EpochDone(0), EpochDone(1), EpochDone(2)]
    assert not sender.finished
    leads = False
    outlet.tell(EpochDone(3))
    assert sender.finished


@pytest.mark.parametrize("batches_per_step, outstanding", [(1, 256), (16, 64), (30000, 1)])
def test_the_driver_may_be_behind_by_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, batches_per_step: int, outstanding: int
) -> None:
    leads = False
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: leads)
    sender = Recording()
    outlet = ToDriver(sender)  # type: ignore[arg-type]
    plan = Begun(3000, 3000, batches_per_step)
    outlet.tell(plan)
    for step in range(2000):
        outlet.tell(step_done(step))
    leads = True
    outlet.tell(step_done(2000))
    assert len(sender.sent) > outstanding + 1
    assert sender.sent == [plan, *map(step_done, range(2002 - len(sender.sent), 2001))]
    outlet.tell(step_done(2001))
    assert sender.waited == [0, outstanding]


def test_results_told_again_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    leads = False
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: leads)
    sender = Recording()
    outlet = ToDriver(sender)  # type: ignore[arg-type]
    told = [Begun(9, 9, 1000), step_done(0), step_done(1)]
    for message in [*told, *told * 9]:
        outlet.tell(message)
    leads = True
    outlet.tell(step_done(2))
    assert sender.sent == [*told, step_done(2)]


def test_who_has_just_joined_need_not_know_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: True)
    sender = Recording()
    outlet = ToDriver(sender)  # type: ignore[arg-type]
    plan = Begun(9, 9, 1)
    for message in (plan, step_done(0), plan, step_done(1)):
        outlet.tell(message)
    assert sender.waited == [256, 256, 0, 256]


class HostLostError(Exception):
    """Nothing more comes from a host."""


class Job:
    """Two executors that tell the same, one of which leads, and their driver."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listener = Listener()
        address = replace(self.listener.address, hosts=("127.0.0.1",))
        self.senders = Sender(address), Sender(address)
        self.outlets = [ToDriver(sender) for sender in self.senders]
        self.logger = RememberingNames()
        self.journal = Journal([ToLogger(Logger(self.logger), ())])
        self.told = self.asking = self.leader = 0
        monkeypatch.setattr("edt_hvd.is_coordinator", lambda: self.asking == self.leader)

    def lead(self, leader: int, *messages: Message) -> None:
        self.leader = leader
        for message in messages:
            for self.asking in range(1, leader - 1, -1):
                self.outlets[self.asking].tell(message)
            self.told += 1

    def begin(self, *messages: Message) -> None:
        with contextlib.suppress(WmlaError):  # its host will be lost
            self.lead(0, *messages)

    def go_on(self, *messages: Message) -> None:
        self.lead(1, *messages)
        self.senders[1].close()

    def take_thirty(self, message: Message) -> None:
        if len(self.logger.train) == 30:
            raise HostLostError
        self.journal.take(message)


def test_no_row_is_lost_with_a_coordinator_that_the_driver_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edt_hvd.wmla.executor.OUTSTANDING", 20)
    job, plan, steps = Job(monkeypatch), Begun(100, 100, 1), [step_done(step) for step in range(100)]
    first = threading.Thread(target=job.begin, args=(plan, *steps[:90]))
    first.start()
    with contextlib.suppress(HostLostError):
        while True:
            job.listener.receive(job.take_thirty, 10)
    while job.told < 1 + 30 + 20:
        pass
    job.listener.give_up_oldest()
    first.join()
    assert job.told == 1 + 30 + 20  # the next one waited
    second = threading.Thread(target=job.go_on, args=(plan, *steps[job.told - 3 :]))  # some a second time
    second.start()
    while second.is_alive() or job.listener.has_connections:
        job.listener.receive(job.journal.take, 0.01)
    assert [iteration for _, iteration, _ in job.logger.train] == list(range(1, 101))
    job.listener.close()


def step_done(step: int) -> StepDone:
    return StepDone(0, step, 1, (MiniBatch(1, 0.0, 0.0),))


def test_datasets_are_made_with_the_random_numbers_of_the_driver(tmp_path: Path) -> None:
    def split() -> tuple[Any, ...]:
        return random.random(), np.random.permutation(9).tolist(), torch.randperm(9).tolist()

    model = torch.nn.Linear(2, 2)
    program = Program(model, torch.optim.SGD(model.parameters(), lr=0.5), torch.nn.MSELoss(), split)
    payload.write(
        tmp_path / "training-1.pkl", Payload(program, Schedule(1, 8, 16, 2), Address(("::1",), 7, "s"))
    )
    in_driver = split()
    given = payload.read(tmp_path / "training-1.pkl")
    assert [program_of(given).datasets_function() for _ in range(2)] == [in_driver, in_driver]


def test_the_command_line_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["executor"])
    with pytest.raises(SystemExit, match=r"usage: .* edt_hvd\.wmla\.executor PAYLOAD"):
        main()
