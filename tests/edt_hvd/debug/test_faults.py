import json
import os
import signal
import time

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd import observing
from edt_hvd.debug import faults
from edt_hvd.debug.faults import Injector
from edt_hvd.errors import FaultError
from fault_rows import fault_script

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def inject(tmp_path, monkeypatch):
    """Let a script with these rows be followed, as by a process that has just been started."""
    script = tmp_path / "faults"

    def inject(*rows, others=()):
        script.write_text(fault_script(*rows))
        injector = Injector(script)
        monkeypatch.setattr(observing, "observers", lambda: (injector, *others))
        return injector

    return inject


@pytest.fixture
def naps(monkeypatch):
    """The seconds that would have been slept."""
    taken = []
    monkeypatch.setattr(time, "sleep", taken.append)
    return taken


def make_state():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    loader = edt_hvd.ElasticDataLoader(torch.ones(12, 3), 4, micro_batch_size=2)
    return edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)


def train(state, steps=3):
    state.sync()
    for step in state.loader:
        for inputs in step:
            step.backward(state.model(inputs).mean())
        state.optimizer.step()
        state.commit()
        if state.progress == steps:
            break


def outcome_of(action):
    """How a fork of this process ends, or is stopped, that does the action."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(9)
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return signal.Signals(os.WSTOPSIG(status))
    return signal.Signals(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def done(tmp_path):
    return {int(path.suffixes[-2][1:]) for path in tmp_path.glob("faults.*.done")}


@pytest.mark.parametrize(
    "verb, number", [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP), ("terminate", signal.SIGTERM)]
)
def test_the_process_gets_the_signal(inject, tmp_path, verb, number):
    injector = inject(f'{{ step = 1, action = "{verb}", rank = 0 }}')
    injector.synced(object(), 0, {})
    assert outcome_of(injector.reducing) is number
    assert done(tmp_path) == {1}


def test_a_fault_happens_once_in_a_job(inject, tmp_path, naps):
    inject('{ step = 2, action = "slow", rank = 0, seconds = 5 }')
    train(make_state())
    inject('{ step = 2, action = "slow", rank = 0, seconds = 5 }')
    train(make_state())
    assert naps == [5.0]
    (claim,) = tmp_path.glob("*.done")
    found = json.loads(claim.read_text())
    assert (found["rank"], found["pid"], found["generation"]) == (0, os.getpid(), 0)


# Resizes.


@pytest.mark.parametrize("point", ["waiting", "rendezvous", "transfer"])
def test_a_newcomer_is_who_has_been_in_no_world(inject, point):
    row = f'{{ resize = 3, action = "kill", rank = "newcomer", point = "{point}" }}'
    others = inject(row)
    others.assigned(3, rank=0)
    others.synced(object(), 7, {})
    newcomer = inject(row)
    found = []
    newcomer._happen = others._happen = found.append
    others.at_rendezvous(3)
    newcomer.at_rendezvous(0)
    others.assigned(4, rank=0)
    newcomer.assigned(4, rank=1)
    others.syncing()
    newcomer.syncing()
    assert found == list(newcomer._faults)


# Files.


@pytest.fixture
def checkpoints(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(folder))
    return folder


@pytest.mark.parametrize("verb, length", [("corrupt", 100), ("truncate", 50)])
def test_the_newest_checkpoint_is_damaged(inject, checkpoints, verb, length):
    for number in (9, 10):
        (checkpoints / f"step-{number:08}").mkdir()
        (checkpoints / f"step-{number:08}" / "state.pt").write_bytes(bytes(100))
    inject(f'{{ step = 1, action = "{verb}-checkpoint" }}')
    train(make_state(), 1)
    older, newer = (checkpoints / f"step-{number:08}" / "state.pt" for number in (9, 10))
    assert older.read_bytes() == bytes(100)
    assert newer.stat().st_size == length
    assert sum(newer.read_bytes()) == (verb == "corrupt")


def test_a_large_disk_is_not_filled(inject, checkpoints, monkeypatch):
    monkeypatch.setattr(faults, "LARGEST_DISK", 10)
    inject('{ step = 1, action = "fill-disk" }')
    with pytest.raises(FaultError, match="expected a small disk of its own, of at most 10 bytes"):
        train(make_state())
    assert list(checkpoints.iterdir()) == []
