"""What the objects of a state are made of: changes refused at commits, prepared by newcomers, rolled back."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.state import structure
from states import expose, take_over, tree_of

pytestmark = pytest.mark.usefixtures("alone")


class Program:
    """A script's objects; its state is made by `state`."""

    def __init__(self, depth: int = 2, samples: int = 8) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(depth)))
        self.optimizer = torch.optim.AdamW(self.model[0].parameters(), lr=0.1)
        self.data = [torch.zeros(2)] * samples
        self.loader = edt_hvd.ElasticDataLoader(self.data, effective_batch_size=4)

    def state(self, **values: Any) -> edt_hvd.TorchState:
        objects = {"model": self.model, "optimizer": self.optimizer, "loader": self.loader, "epoch": 0}
        state = edt_hvd.TorchState(**objects, **values)
        state.sync()
        return state

    def train(self, state: edt_hvd.TorchState) -> None:
        self.model(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        state.commit()


def add_group(p: Program) -> None:
    p.optimizer.add_param_group({"params": p.model[1].parameters(), "lr": 0.01})


def replace_head(p: Program) -> None:
    p.model[1] = nn.Linear(2, 3)


def prune(p: Program) -> None:
    p.model[1].weight.data = p.model[1].weight.data[:1]


def tie(p: Program) -> None:
    p.model[1].weight = p.model[0].weight


def halve(p: Program) -> None:
    p.model[1].half()


def add_buffer(p: Program) -> None:
    p.model.register_buffer("mask", torch.ones(3))


def lengthen(p: Program) -> None:
    p.data.append(torch.zeros(2))


CHANGES = [
    (add_group, r"group 1 of optimizer was missing, now it is 2 parameters"),
    (replace_head, r"model\.1\.weight was float32\[2, 2\], now it is float32\[3, 2\]"),
    (prune, r"model\.1\.weight was float32\[2, 2\], now it is float32\[1, 2\]"),
    (tie, r"model\.1\.weight was float32\[2, 2\], now it is the same as model\.0\.weight"),
    (halve, r"model\.1\.bias was float32\[2\], now it is float16\[2\]"),
    (add_buffer, r"model\.mask was missing, now it is float32\[3\]"),
    (lengthen, r"dataset_length of loader was 8, now it is 9"),
]


@pytest.mark.parametrize("change, said", CHANGES)
def test_a_change_without_prepare_is_refused_at_the_commit_that_brings_it(
    change: Callable[[Program], None], said: str
) -> None:
    program = Program()
    state = program.state()
    state.commit()
    change(program)
    with pytest.raises(edt_hvd.StateError, match=rf"{said}.*prepare="):
        state.commit()
    assert state.progress == 1


def test_what_stays_the_same_is_no_change() -> None:
    program = Program()
    state = program.state()
    program.model[1] = nn.Linear(2, 2)
    program.optimizer.param_groups[0]["lr"] = 0.5
    program.model.requires_grad_(False).eval()
    state.commit()
    assert state.progress == 1


@pytest.mark.parametrize("change, said", CHANGES)
def test_newcomers_make_the_change_in_prepare_and_fail_alone_without(
    change: Callable[[Program], None], said: str
) -> None:
    old, newcomer, stranger = Program(), Program(), Program()
    seen: list[Any] = []

    def prepare(values: Any) -> None:
        seen.append((values.epoch, hasattr(values, "model"), newcomer.model[0].weight.sum().item()))
        change(newcomer)

    state, joining = old.state(prepare=lambda _: None), newcomer.state(prepare=lambda _: None)
    state.epoch = 3
    with torch.no_grad():
        old.model[0].weight.add_(1)
    change(old)
    state.commit()
    tree = tree_of(state)
    joining._contents._prepare = prepare
    before = newcomer.model[0].weight.sum().item()
    take_over(joining, tree)
    assert seen == [(3, True, before)]
    assert torch.equal(newcomer.model[0].weight, old.model[0].weight)
    assert structure.structure_of(joining._contents.values()) == structure.structure_of(
        state._contents.values()
    )
    label = said.partition(" was ")[0]
    with pytest.raises(
        edt_hvd.StateError, match=rf"does not fit this worker's objects: .*its {label} is .*here"
    ):
        take_over(stranger.state(), tree)


def test_prepare_gets_the_plain_values_that_the_objects_belong_to() -> None:
    """After the last commit the epoch counts on, and no objects are made for it."""

    def restarted(tree: dict[str, Any]) -> tuple[list[int], edt_hvd.TorchState]:
        other, seen = Program(), list[int]()

        def prepare(values: Any) -> None:
            seen.append(values.epoch)
            values.loader = edt_hvd.ElasticDataLoader([torch.zeros(2)] * [8, 12][values.epoch], 4)

        state = other.state(prepare=lambda _: None)
        state._contents._prepare = prepare
        take_over(state, tree)
        return seen, state

    program = Program()
    state = program.state(prepare=lambda _: None)
    expose(state)
    state.epoch, state.loader = 1, edt_hvd.ElasticDataLoader([torch.zeros(2)] * 12, 4)
    program.train(state)
    state.epoch = 2
    state.note_return()
    assert state._checkpointing.take_snapshot(state.progress)
    for tree in (tree_of(state), state._rollback.snapshots.last.tree):
        seen, again = restarted(tree)
        assert (seen, again.epoch, len(again.loader)) == ([1], 2, 3)
        assert restarted(tree_of(again))[0] == [1]
    state.restore()
    assert (state.epoch, restarted(tree_of(state))[0]) == (2, [1])


def test_states_of_parameters_that_were_replaced_are_refused_with_what_to_do() -> None:
    program = Program()
    state = program.state(prepare=lambda _: None)
    program.train(state)
    old, new = program.model[0].weight, nn.Parameter(torch.zeros(3, 2))
    program.model[0].weight = new
    program.optimizer.param_groups[0]["params"][0] = new
    with pytest.raises(edt_hvd.StateError, match=r"optimizer has the states .* float32\[2, 2\]\. .*pop\(old"):
        state.commit()
    program.optimizer.state[new] = program.optimizer.state.pop(old)
    state.commit()


def test_a_rollback_takes_back_a_change_that_is_not_committed_and_keeps_one_that_is() -> None:
    program = Program()
    state = program.state(prepare=lambda _: None)
    expose(state)
    program.train(state)
    state._rollback.snapshots.taken(0.0, 1e9)  # too costly to be taken again
    for is_stepped in (False, True):
        head = program.model[1]
        add_group(program)
        replace_head(program)
        if is_stepped:
            program.model[0](torch.ones(1, 2)).sum().backward()
            program.optimizer.step()
        state.restore()
        assert len(program.optimizer.param_groups) == 1
        assert program.model[1] is head
    add_group(program)
    program.train(state)
    wanted = program.model[1].weight.clone()
    assert state._rollback.snapshots.last.commits == 2
    program.model(torch.ones(1, 2)).sum().backward()
    program.optimizer.step()
    state.restore()
    assert state.progress == 2
    assert torch.equal(program.model[1].weight, wanted)


class Refusing:
    def state_dict(self) -> dict[str, Any]:
        return {"phase": 1}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise KeyError("stage")


class Lenient(nn.Linear):
    """Loads what it knows, and does not say what is missing."""

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        return super().load_state_dict(state_dict, strict=False)


@pytest.mark.parametrize(
    "there, here, said",
    [
        (Refusing(), Refusing(), "its part cannot be loaded: KeyError: 'stage'"),
        (Lenient(2, 1), Lenient(2, 1, bias=False), r"its part\.bias is float32\[1\], here it is missing"),
        (Lenient(2, 1, bias=False), Lenient(2, 1), r"its part\.bias is missing, here it is float32\[1\]"),
    ],
)
def test_what_is_received_fits_entirely_or_is_refused(there: Any, here: Any, said: str) -> None:
    state = edt_hvd.TorchState(part=here)
    state.sync()
    with pytest.raises(edt_hvd.StateError, match=said):
        take_over(state, tree_of(edt_hvd.TorchState(part=there)))


def test_a_prepare_that_fails_is_named() -> None:
    def prepare(values: Any) -> None:
        raise ValueError("too deep")

    with pytest.raises(edt_hvd.StateError, match="passed as prepare= failed: ValueError: too deep"):
        edt_hvd.TorchState(epoch=0, prepare=prepare).sync()
    with pytest.raises(edt_hvd.StateError, match=r"prepare= got a int; .*choose another name"):
        edt_hvd.TorchState(prepare=3)
