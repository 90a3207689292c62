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


@pytest.mark.parametrize(
    "options, events, holds",
    [
        ({}, "step save due work", 0),  # evaluation, or a collective operation of the checkpoint
        ({}, "step save due work step", 1),
        ({}, "save step due step saving step", 0),  # steps would be lost
        ({}, "save due work", 1),
        ({"rank": 1}, "step save due step", 0),
        ({"epochs": 2}, "save due step epoch3", 0),
        ({"epochs": 2}, "save due step epoch3 epoch4", 1),
    ],
    ids=[
        "no step yet",
        "a step",
        "steps since",
        "without optimizer",
        "another rank",
        "odd epoch",
        "even epoch",
    ],
)
def test_a_resize_that_is_due_holds_where_no_step_is_lost(
    link: Link, options: dict[str, int], events: str, holds: int
) -> None:
    one = worker(link, **options)
    happen = {
        "step": one.come_to_step,
        "work": one.come_to_work,
        "save": lambda: save(one),
        "saving": lambda: one.save(True),
        "due": lambda: setattr(link, "is_due", True),
        "epoch3": lambda: one.begin_epoch(3),
        "epoch4": lambda: one.begin_epoch(4),
    }
    for event in events.split():
        happen[event]()
    assert link.said.count(messages.Held()) == holds


def test_steps_go_on_from_those_of_the_worlds_before(link: Link) -> None:
    one = worker(link)
    one.begin_epoch(7)
    one.finish_step()
    assert link.said == [messages.Progress(41, 7, 2)]


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
