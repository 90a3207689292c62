"""Where a worker waits: at the gate, and after a checkpoint when a resize is due."""

import os
from typing import Any

import pytest
from torch.nn.parallel import DistributedDataParallel

from edt_hvd.torchrun.worker import Worker, release_before_group
from edt_messages import messages
from interpreters import Interpreters


class Link:
    """Keeps what is said; nobody waits."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.is_due = False
        self.step = 40

    def send(self, message: messages.Message) -> None:
        self.said.append(message)

    ask = send

    def holds(self) -> int:
        return self.said.count(messages.Held())


GATE = """
import torch
from edt_hvd.torchrun import worker

class Newcomer:
    def pass_gate(self):
        print("at the gate")

worker.install()
torch.distributed.is_torchelastic_launched()
worker.current = Newcomer()
{call}
"""


@pytest.mark.parametrize("call", ["is_torchelastic_launched()", "init_process_group('nonsense')"])
def test_a_newcomer_waits_where_a_program_asks_for_its_world(interpreters: Interpreters, call: str) -> None:
    done = interpreters.run(GATE.format(call=f"torch.distributed.{call}"))
    assert done.stdout == "at the gate\n", done.stderr


@pytest.fixture
def link() -> Link:
    return Link()


def worker(link: Any, rank: int = 0, epochs: int | None = None) -> Worker:
    return Worker(link, rank, 2, epochs)


def save(one: Worker) -> None:
    one.save(True)
    one.save(False)


def test_rank_0_holds_at_the_first_step_after_a_checkpoint(link: Link) -> None:
    one = worker(link)
    one.come_to_step()
    save(one)
    link.is_due = True
    one.come_to_work()  # evaluation, or a collective operation of the checkpoint
    assert link.holds() == 0
    one.come_to_step()
    assert link.holds() == 1


def test_it_does_not_hold_where_steps_would_be_lost(link: Link) -> None:
    one = worker(link)
    save(one)
    one.come_to_step()
    link.is_due = True
    one.come_to_step()
    one.save(True)
    one.come_to_step()  # while a checkpoint is written
    assert link.holds() == 0


def test_without_optimizer_steps_it_holds_where_it_computes(link: Link) -> None:
    one = worker(link)
    save(one)
    link.is_due = True
    one.come_to_work()
    assert link.holds() == 1


def test_other_ranks_do_not_hold(link: Link) -> None:
    one = worker(link, rank=1)
    save(one)
    link.is_due = True
    one.come_to_step()
    assert link.holds() == 0
    assert link.said == [messages.Saving(True), messages.Saving(False)]


def test_epochs_take_the_place_of_checkpoints(link: Link) -> None:
    one = worker(link, epochs=2)
    save(one)
    link.is_due = True
    one.come_to_step()
    one.begin_epoch(3)
    assert link.holds() == 0
    one.begin_epoch(4)
    assert link.holds() == 1


def test_processes_of_the_program_are_not_the_worker(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    one = worker(link)
    link.is_due = True
    monkeypatch.setattr(os, "getpid", lambda: 1)
    one.pass_gate()
    save(one)
    one.come_to_step()
    one.begin_epoch(0)
    one.finish_step()
    assert link.said == []


def test_a_ddp_model_refers_to_its_group_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    released = []

    class Part:
        def __init__(self, name: str) -> None:
            self.name = name

        def __del__(self) -> None:
            released.append(self.name)

    monkeypatch.setattr(DistributedDataParallel, "__del__", release_before_group, raising=False)
    model = DistributedDataParallel.__new__(DistributedDataParallel)
    model.__dict__.update({name: Part(name) for name in ("process_group", "reducer", "logger")})
    del model
    assert released[-1] == "process_group"
