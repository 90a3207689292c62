"""When full copies are taken, and what becomes of a worker that would need one and has none."""

import itertools
from pathlib import Path

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.returning import call_to_common_end
from edt_hvd.state import host_memory
from edt_hvd.state.checkpoint import checkpoints
from edt_hvd.state.snapshot import Snapshots
from states import assert_same, change_values, make_state, picture, train_step

pytestmark = pytest.mark.usefixtures("alone")


class Program:
    """Trains on a loader of four steps an epoch."""

    commits_after = False

    def __init__(self, averages: bool = False, validates: bool = False, closure: bool = False) -> None:
        torch.manual_seed(0)
        self.model, self.averages, self.validates = nn.Linear(2, 1), averages, validates
        plain = (torch.optim.LBFGS if closure else torch.optim.SGD)(self.model.parameters(), lr=0.1)
        self.optimizer = edt_hvd.DistributedOptimizer(plain, self.model)
        self.loader = edt_hvd.ElasticDataLoader([torch.ones(2)] * 8, 2, 2)
        self.state = edt_hvd.TorchState(model=self.model, optimizer=self.optimizer, loader=self.loader)
        self.state.sync()
        self.closure = self.loss if closure else None

    def loss(self) -> torch.Tensor:
        edt_hvd.average(1.0)
        return self.model(torch.ones(2)).square().sum().detach()

    def copies(self, epochs: int = 1) -> list[bool]:
        """Whether there is a full copy: at first, and after each commit."""
        found = [self.has_copy]
        for _ in range(epochs):
            for step in self.loader:
                for inputs in step:
                    step.backward(self.model(inputs).square().mean())
                self.optimizer.step(*[self.closure] if self.closure else [])
                if self.averages:
                    edt_hvd.average(1.0)
                self.state.commit()
                found.append(self.has_copy)
            if self.validates:
                edt_hvd.average(1.0)
                if self.commits_after:
                    self.state.commit()
        return found

    @property
    def has_copy(self) -> bool:
        return self.state._rollback.snapshots.last is not None


def test_a_loop_without_collectives_between_step_and_commit_needs_no_copy_but_at_the_first_end() -> None:
    assert Program().copies(2) == [True, False, False, True, True, False, False, False, False]


@pytest.mark.parametrize("how", ["averages", "closure"])
def test_a_loop_with_them_has_copies(how: str) -> None:
    assert all(Program(**{how: True}).copies(2))


@pytest.mark.parametrize("commits_after", [False, True])
def test_a_loop_that_validates_has_them_at_the_ends_of_epochs(commits_after: bool) -> None:
    ends = [False, False, True, True]
    program = Program(validates=True)
    program.commits_after = commits_after
    assert program.copies(3) == [True, *ends, *ends, *ends]


def test_a_worker_that_writes_checkpoints_has_them_too_whatever_copies_cost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setattr(checkpoints, "_serial", itertools.count(1))
    monkeypatch.setattr(Snapshots, "is_due", lambda copies, now, commits: copies.last is None)
    program = Program(validates=True)
    program.copies(3)
    last = program.state._rollback.snapshots.last
    assert last is not None
    assert last.commits == 11  # before the last step of the third epoch


@pytest.mark.parametrize("write", [torch.Tensor.add_, torch.nn.init.constant_])
def test_parameters_that_no_optimizer_of_the_state_writes_to_need_them(write: object) -> None:
    program = Program()
    program.copies()
    program.state.commit()
    with torch.no_grad():
        write(program.model.weight, 1.0)  # type: ignore[operator]
    program.state.commit()
    assert program.has_copy


def test_where_no_copy_is_needed_a_loss_goes_back_to_the_last_commit() -> None:
    state = make_state()
    state._rollback.exposure.within = state._rollback.exposure.at_end = False
    train_step(state)
    state.commit()
    before = picture(state)
    change_values(state)
    state.restore()
    assert state._rollback.snapshots.last is None
    assert_same(picture(state), before)
    assert state.progress == 1


def lose(state: edt_hvd.TorchState) -> None:
    """A worker is lost after a step, in a collective that was never called there before."""
    state._rollback.exposure.within = state._rollback.exposure.at_end = False
    train_step(state)
    state.commit()
    train_step(state)
    state.restore()
    assert state.progress == 0
    state.on_reset()


def test_without_a_copy_and_a_checkpoint_the_job_ends_with_an_error() -> None:
    state = make_state()
    lose(state)
    with pytest.raises(edt_hvd.StateError, match="no worker has a copy of the state"):
        state.sync()


def test_without_a_copy_training_goes_on_from_the_newest_checkpoint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setattr(checkpoints, "_serial", itertools.count(1))
    state = make_state()
    train_step(state)
    state.commit()
    state.save_to_disk()
    before = picture(state)
    state._rollback.snapshots.drop()
    train_step(state)
    state.restore()
    state.on_reset()
    assert not state._survives
    state.sync()
    assert_same(picture(state), before)
    assert state.progress == 1


def test_a_copy_that_does_not_fit_is_not_taken_and_said_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setattr(checkpoints, "_serial", itertools.count(1))
    monkeypatch.setattr(host_memory, "available", lambda: 10)
    program = Program(averages=True)
    assert not any(program.copies(2))
    said = [str(warning.message) for warning in recwarn if "full copy" in str(warning.message)]
    assert len(said) == 1
    assert "0.00 GB are available" in said[0]
    program.state.finish()  # all the same, the last state is written
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000008"]
    assert not program.has_copy


V1 = {"memory/job/memory.limit_in_bytes": "9", "memory/job/memory.usage_in_bytes": "4"}


@pytest.mark.parametrize(
    "own, files, left",
    [
        ("0::/job/worker", {"job/memory.max": "1000", "job/memory.current": "400"}, 650),
        ("0::/job", {"job/memory.max": "max", "job/memory.current": "400"}, None),
        ("0::/", {}, None),
        ("4:memory:/job", V1, 5),
        ("3:cpu:/job", V1, None),
    ],
)
def test_the_available_memory_is_that_of_the_control_groups(
    own: str, files: dict[str, str], left: int | None, tmp_path: Path
) -> None:
    for name, text in {"own": own, **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        (path.parent / "memory.stat").write_text("anon 1\ninactive_file 50\n")
    found = host_memory.available(tmp_path, tmp_path / "own")
    assert found == left if left is not None else found > 1000


def test_a_worker_that_is_lost_after_the_return_costs_nothing() -> None:
    program = Program()
    call_to_common_end(lambda state: program.copies(epochs=2), program.state)
    assert not program.has_copy
    weight = program.model.weight.detach().clone()
    program.state.restore()
    assert torch.equal(program.model.weight, weight)
    assert program.state.progress == 8
