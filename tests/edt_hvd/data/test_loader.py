"""Tests of the elastic loader; several workers are as many loaders that take turns in one process."""

import gc
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.data.loader import ElasticDataLoader, Step
from edt_hvd.errors import StateError
from edt_hvd.world import world
from examples import fewer
from places import Numbers, Place, batches_of, numbers_loader, parameter_loss, simulated


def with_processes(test: Callable[..., None]) -> Callable[..., None]:
    """Let a test fork loading processes, although torch wants more cores and Python fewer threads for it."""
    few_cores = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
    threads = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
    marked: Callable[..., None] = few_cores(threads(test))
    return marked


class Told(Numbers):
    """Sample i is the number i, the process that loaded it, and what the dataset was told last."""

    value = 0

    def __getitem__(self, index: int) -> tuple[int, int, int]:  # type: ignore[override]
        return index, os.getpid(), self.value


# Which samples a step has.


@fewer(1 / 4)
@given(st.integers(0, 80), st.integers(1, 20), st.booleans(), st.integers(-(2**70), 2**70))
def test_an_epoch_is_a_permutation_cut_into_steps(
    length: int, effective: int, drop_last: bool, seed: int
) -> None:
    with simulated(Place()):
        loader = numbers_loader(length, effective, seed=seed, drop_last=drop_last)
        steps = batches_of(loader)
    assert len(steps) == len(loader)
    assert all(len(samples) == effective for samples in steps[:-1])
    used = list(chain(*steps))
    assert len(set(used)) == len(used) == (length // effective * effective if drop_last else length)
    assert set(used) <= set(range(length))


# Any number of workers, changing at any step.


@dataclass
class Worker:
    loader: ElasticDataLoader
    loop: Iterator[Step] | None = None


@dataclass
class Job:
    """Workers whose loaders step together, resized between steps as elastic training would."""

    place: Place
    make_loader: Callable[[], ElasticDataLoader]
    workers: list[Worker] = field(default_factory=list)

    def turn(self, rank: int) -> Worker:
        self.place.rank, self.place.size = rank, len(self.workers)
        return self.workers[rank]

    def resize(self, size: int, keep_loops: bool, first_survivor: int) -> None:
        state = self.workers[0].loader.state_dict() if self.workers else None
        first_survivor %= len(self.workers) or 1
        self.workers = (self.workers[first_survivor:] + self.workers[:first_survivor])[:size]
        while len(self.workers) < size:
            self.workers.append(Worker(self.make_loader()))
        for worker in self.workers:
            if state is not None:
                worker.loader.load_state_dict(state)
            if not keep_loops:
                worker.loop = None
        self.place.membership += 1

    def step(self) -> list[list[int]] | None:
        """One step of all workers: the samples of each micro-batch in rank order; None at the epoch's end."""
        per_worker = [self._step_of(rank) for rank in range(len(self.workers))]
        if None in per_worker:
            assert per_worker == [None] * len(self.workers)
            return None
        counts = [len(each or ()) for each in per_worker]
        assert max(counts) - min(counts) <= 1
        return list(chain(*(each or () for each in per_worker)))

    def fail_inside_step(self, micro_batches: int) -> None:
        """Every worker gets some micro-batches of the step, then all go back to the last commit."""
        state = self.workers[0].loader.state_dict()
        for rank in range(len(self.workers)):
            worker = self.turn(rank)
            worker.loop = None
            step = next(iter(worker.loader), None)
            if step is not None:
                list(islice(step, micro_batches))
            worker.loader.load_state_dict(state)

    def _step_of(self, rank: int) -> list[list[int]] | None:
        worker = self.turn(rank)
        worker.loop = worker.loop or iter(worker.loader)
        step = next(worker.loop, None)
        if step is None:
            worker.loop = None
            return None
        return list(step)


resizes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 6), st.booleans(), st.integers(0, 5), st.integers(-3, 3)),
    max_size=8,
)


@pytest.mark.filterwarnings("ignore:a step of .* samples has:UserWarning")
@fewer(1 / 4)
@given(st.integers(1, 70), st.integers(1, 25), st.data(), st.integers(1, 6), resizes)
def test_every_resize_schedule_uses_every_sample_once_in_the_same_steps(
    length: int,
    effective: int,
    data: st.DataObject,
    size: int,
    schedule: list[tuple[int, int, bool, int, int]],
) -> None:
    micro = data.draw(st.integers(1, effective))
    with simulated(Place()):
        undisturbed = numbers_loader(length, effective, micro, seed=5)
        expected = [[list(step) for step in undisturbed] for _ in range(2)]
    with simulated(Place()) as place:
        job = Job(place, lambda: numbers_loader(length, effective, micro, seed=5))
        job.resize(size, False, 0)
        plan = list(schedule)
        steps_to_go = plan[0][0] if plan else -1
        for epoch in expected:
            for step in epoch:
                while plan and steps_to_go == 0:
                    _, new_size, keep_loops, first_survivor, inside = plan.pop(0)
                    if inside >= 0:
                        job.fail_inside_step(inside)
                    job.resize(new_size, keep_loops, first_survivor)
                    steps_to_go = plan[0][0] if plan else -1
                assert job.step() == step
                steps_to_go -= 1
            assert job.step() is None


def test_a_world_that_changes_inside_a_step_is_refused(place: Place) -> None:
    loader = numbers_loader()
    micro_batches = iter(next(iter(loader)))
    next(micro_batches)
    place.membership += 1
    with pytest.raises(RuntimeError, match="the world changed inside step 0 of epoch 0; commit after"):
        list(micro_batches)
    assert loader.position == 0


# The gradients of a step.


def test_what_belongs_into_the_loop_over_a_step_is_refused_outside_it(place: Place) -> None:
    place.rank, place.size = 1, 2
    step = next(iter(numbers_loader(10, 10, 3)))
    message = r"backward\(\) outside the loop over <step 0 of epoch 0>"
    with pytest.raises(RuntimeError, match=message):
        step.backward(parameter_loss())
    assert [(step.micro_batch.index, len(step.micro_batch.positions)) for _ in step] == [(2, 3), (3, 1)]
    with pytest.raises(RuntimeError, match=message):
        step.backward(parameter_loss())
    with pytest.raises(RuntimeError, match="no micro-batch outside the loop over"):
        _ = step.micro_batch


def test_what_belongs_behind_the_loop_over_a_step_is_refused_inside_it(place: Place) -> None:
    loader = numbers_loader()
    step = next(loop := iter(loader))
    for _ in step:
        with pytest.raises(RuntimeError, match="the loss of <step 0 of epoch 0> is known when"):
            _ = step.loss
        with pytest.raises(RuntimeError, match=r"state.commit\(\) inside the loop over <step 0 of epoch 0>"):
            loader.note_commit()
        with pytest.raises(TypeError, match="got a float; give the loss tensor"):
            step.backward(0.5)  # type: ignore[arg-type]
    del loop


def test_a_step_from_an_earlier_position_is_refused(place: Place) -> None:
    loader = numbers_loader(8, 4)
    early = next(iter(loader))
    list(next(iter(loader)))
    with pytest.raises(RuntimeError, match="step 0 of epoch 0 is used when the loader is at step 1"):
        next(iter(early))


# Where the loader is.


def test_a_loop_that_is_left_in_the_last_step_is_followed_by_the_next_epoch(place: Place) -> None:
    loader = numbers_loader(8, 4, shuffle=False)
    for step in loader:
        list(step)
        assert (loader.epoch, loader.position) == (0, step.index + 1)
        if step.index == 1:
            break
    assert (loader.epoch, loader.position, loader.total_steps_done) == (0, 2, 2)
    assert batches_of(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (loader.epoch, loader.position, loader.total_steps_done) == (2, 0, 4)


@pytest.mark.parametrize("micro_batches", [0, 1, 4])
def test_going_on_from_an_unfinished_step_is_refused(place: Place, micro_batches: int) -> None:
    loader = numbers_loader(8, 4)
    message = "<step 0 of epoch 0> was left before its micro-batches were used up"
    loop = iter(loader)
    list(islice(next(loop), micro_batches))
    with pytest.raises(RuntimeError, match=message):
        next(loop)
    assert loader.position == 0
    assert len(batches_of(loader)) == 2


def counted_by_way_of_a_generator(loader: ElasticDataLoader) -> int | None:
    for i, step in enumerate(each for each in loader):
        list(step)
        return i
    return None


def test_a_loop_that_begins_in_mid_epoch_is_enumerated_from_there(place: Place) -> None:
    loader = numbers_loader(20, 4, shuffle=False)
    for i, step in enumerate(loader):
        assert i == step.index
        list(step)
        if i == 1:
            break
    assert [(i, list(step))[0] for i, step in enumerate(iter(loader), start=10)] == [12, 13, 14]
    with pytest.warns(UserWarning, match="use step.index") as caught:
        assert counted_by_way_of_a_generator(loader) == 0
    assert caught[0].filename == __file__
    for step in (each for each in loader):
        list(step)


# Saving and loading.


def test_a_saved_position_is_continued_in_a_new_loader(place: Place) -> None:
    loader = numbers_loader(30, 4, seed=3)
    batches_of(loader)
    loop = iter(loader)
    list(next(loop))
    state = loader.state_dict()
    rest = [list(chain(*step)) for step in loop]
    other = numbers_loader(30, 4, seed=8)
    other.load_state_dict(state)
    assert (other.epoch, other.position, other.total_steps_done) == (1, 1, 9)
    assert batches_of(other) == rest
    assert batches_of(other) == batches_of(loader)


def test_loading_inside_the_loop_goes_on_from_there(place: Place) -> None:
    loader = numbers_loader(12, 4, shuffle=False)
    start = loader.state_dict()
    loop = iter(loader)
    list(next(loop))
    abandoned = next(loop)
    next(iter(abandoned))
    loader.load_state_dict(start)
    assert [list(chain(*step)) for step in loop] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"dataset_length": 9}, "dataset_length=9, this loader dataset_length=12"),
        ({"effective_batch_size": 8}, "effective_batch_size=8, this loader effective_batch_size=4"),
        ({"shuffle": False}, "shuffle=False, this loader shuffle=True"),
        ({"drop_last": True}, "drop_last=True, this loader drop_last=False"),
        ({"step": 4}, "step=4, but epochs have 3 steps"),
        ({"epoch": -1}, "epoch=-1 and step=0, but both begin at 0"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(
    place: Place, change: dict[str, Any], message: str
) -> None:
    loader = numbers_loader(12, 4)
    before = loader.state_dict()
    with pytest.raises(StateError, match=message):
        loader.load_state_dict(before | {"seed": 77} | change)
    assert loader.state_dict() == before


def test_a_state_without_its_entries_is_refused(place: Place) -> None:
    with pytest.raises(StateError, match="loader state without dataset_length, drop_last, effective"):
        numbers_loader().load_state_dict({"epoch": 0})


# The size of a micro-batch.


def test_the_world_is_not_asked_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise AssertionError("the world was asked")

    for name in ("rank", "size", "max_size", "membership"):
        monkeypatch.setattr(world, name, refuse)
    loader = ElasticDataLoader(Numbers(10), 4)
    loader.load_state_dict(loader.state_dict())
    assert (len(loader), loader.epoch, loader.position, loader.total_steps_done) == (3, 0, 0, 0)
    with pytest.raises(AssertionError, match="the world was asked"):
        next(iter(loader))


def test_a_newcomer_takes_over_the_chosen_micro_batch(place: Place) -> None:
    place.max_size = 12
    loader = numbers_loader(100, 32, None)
    with pytest.warns(UserWarning, match="default micro_batch_size=4 cuts .*size=2 is used"):
        next(iter(loader))
    place.max_size = 20
    newcomer = numbers_loader(100, 32, None)
    newcomer.load_state_dict(loader.state_dict())
    assert newcomer.micro_batch_size == 2
    place.max_size = 8
    asking_for_another = numbers_loader(100, 32, 4)
    asking_for_another.load_state_dict(loader.state_dict())
    assert asking_for_another.micro_batch_size == 4


@pytest.mark.parametrize("sizes", [{"effective_batch_size": 16}, {"batch_sampler": [range(16)]}])
def test_the_default_micro_batch_does_not_depend_on_the_number_of_workers(
    place: Place, sizes: dict[str, Any]
) -> None:
    def cut() -> list[int]:
        loader = ElasticDataLoader(Numbers(16), collate_fn=len, **sizes)
        return [len(each) for each in next(iter(loader))._batch.slots]

    for place.max_size in (1, 3, 8):
        assert cut() == [2] * 8
    place.max_size = 9
    with pytest.warns(UserWarning, match="default micro_batch_size=2 cuts|cut for the 9 workers"):
        assert cut() == [1] * 16


# What can be loaded.


# Loading in processes.


@with_processes
@pytest.mark.parametrize("options", [{"persistent_workers": True}, {}], ids=len)
def test_a_prefetch_is_of_its_world_and_processes_know_what_the_dataset_was_told_before_the_loop(
    place: Place, options: dict[str, bool]
) -> None:
    told = Told(40)
    loader = ElasticDataLoader(told, 8, 1, num_workers=2, prefetch_factor=3, collate_fn=list, **options)
    expected = numbers_loader(40, 8)
    processes, known = Counter[int](), set[tuple[int, int]]()

    def samples_of(step: Step, turn: int) -> list[int]:
        found = list(chain(*step))
        processes.update(pid for _, pid, _ in found)
        known.update((turn, seen) for _, _, seen in found)
        return [index for index, *_ in found]

    for epoch in range(2):
        whole = batches_of(expected)
        place.rank, place.size = 0, 1
        told.value = turn = 10 * epoch
        for step in loader:  # left with the next steps' samples prefetched
            assert samples_of(step, turn) == whole[0]
            break
        for step in loader:  # left in the middle of a step
            next(iter(step))
            break
        place.rank, place.size, place.membership = 1, 2, place.membership + 1
        told.value = turn = 10 * epoch + 1
        loop = iter(loader)
        assert samples_of(next(loop), turn) == whole[1][4:]
        place.rank, place.size, place.membership = 0, 3, place.membership + 1
        assert samples_of(next(loop), turn) == whole[2][:2]
        told.value = turn = 10 * epoch + 2
        assert [samples_of(step, turn) for step in loader] == [whole[3][:2], whole[4][:2]]
        place.rank, place.size = 0, 1
    assert os.getpid() not in processes
    assert (len(processes) == 2) == bool(options)
    assert options or all(turn == seen for turn, seen in known)


@with_processes
def test_processes_of_a_loader_that_is_gone_end_without_the_garbage_collector(place: Place) -> None:
    loader = ElasticDataLoader(Told(40), 8, 1, num_workers=2, collate_fn=list)
    for step in loader:
        list(step)
        break
    assert len(multiprocessing.active_children()) == 2
    gc.disable()
    try:
        del loader, step
        assert multiprocessing.active_children() == []
    finally:
        gc.enable()
