"""Tests of the loader on streams."""

import random
import warnings
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Dataset

from crew import together
from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.errors import StateError
from examples import fewer
from places import Place, simulated
from streams import (
    Augmented,
    CountingEpochs,
    Plain,
    Sharded,
    Stateful,
    StatefulSharded,
    Steps,
    alone,
    in_world,
    read,
    stream_loader,
)

# What steps have.


@pytest.mark.filterwarnings("ignore:Augmented gave no sample")
@given(st.integers(0, 40), st.integers(1, 12), st.data(), st.booleans())
@fewer(0.15)
def test_a_stream_gives_what_a_dataset_gives_unshuffled(
    length: int, effective: int, data: st.DataObject, drop_last: bool
) -> None:
    micro = data.draw(st.integers(1, effective))

    class Numbers(Dataset[Any]):
        def __len__(self) -> int:
            return length

        def __getitem__(self, index: int) -> Any:
            return index, random.random()

    def collated(samples: list[Any]) -> list[Any]:
        return [*samples, random.random()]

    expected = alone(Numbers(), effective, micro, shuffle=False, drop_last=drop_last, collate_fn=collated)
    assert alone(Augmented(length), effective, micro, drop_last=drop_last, collate_fn=collated) == expected


@st.composite
def resizes(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Worlds by size, and how many steps each has."""
    return draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=3))


MAKERS: dict[str, Callable[[], Any]] = {
    "plain": lambda: Plain(31),
    "stateful": lambda: Stateful(31),
    "counting epochs": lambda: CountingEpochs(31),
    "sharded": lambda: Sharded([list(range(n, n + 13)) for n in range(0, 400, 100)]),
    "stateful shards": lambda: StatefulSharded([list(range(n, n + n // 50)) for n in range(100, 700, 100)]),
}


@given(st.sampled_from(sorted(MAKERS)), resizes())
@fewer(0.6)
def test_resizes_change_nothing(kind: str, worlds: list[tuple[int, int]]) -> None:
    def make() -> ElasticDataLoader:
        return stream_loader(MAKERS[kind](), 6, 1, snapshot_every_n_steps=3)

    state, taken = None, list[Any]()
    for generation, (size, steps) in enumerate([*worlds, (2, 9), (1, 9), (3, 9)]):
        found, state = in_world(size, make, state, steps, membership=generation)
        taken += found
    with simulated(Place(max_size=4)):
        loader, expected = make(), list[Any]()
        while len(expected) < len(taken):
            expected += read(loader)
    assert len(taken) >= 12
    assert taken == expected[: len(taken)]


# Sharded streams.


def test_shards_are_read_by_those_whose_micro_batches_come_from_them() -> None:
    opened = [list[int](), list[int]()]

    def work(rank: int) -> Steps:
        lists = [list(range(n, n + 5)) for n in range(0, 80, 10)]
        return read(stream_loader(Sharded(lists, opened[rank])))

    first, second = together(2, work, max_size=4)
    assert opened == [[0, 2, 1, 3], [4, 6, 5, 7]]
    assert first[0] == [[0], [20]]
    assert second[0] == [[40], [60]]
    assert sorted(chain(*chain(*first), *chain(*second))) == [
        n + i for n in range(0, 80, 10) for i in range(5)
    ]


def test_shards_that_end_early_leave_steps_short() -> None:
    lists = [[1, 2, 3], [11], [21, 22]]
    found, _ = in_world(2, lambda: stream_loader(Sharded(lists), 3, 1), max_size=2)
    assert found == [[[1], [11], [21]], [[2], [22]], [[3]]]
    found, _ = in_world(2, lambda: stream_loader(Sharded(lists), 3, 1, drop_last=True), max_size=2)
    assert found == [[[1], [11], [21]]]


def test_in_the_middle_of_an_epoch_shards_are_cut_as_before() -> None:
    def make(micro: int) -> Callable[[], ElasticDataLoader]:
        return lambda: stream_loader(Sharded([[1, 2, 3, 4], [11, 12, 13, 14]]), 4, micro)

    _, state = in_world(1, make(2), steps=1, max_size=2)
    with pytest.raises(StateError, match="micro_batch_size=2, this loader 1, so the steps of its sharded"):
        in_world(1, make(1), state)
    _, state = in_world(1, make(2), max_size=2)
    found, _ = in_world(1, make(1), state)
    assert found[0] == [[1], [2], [11], [12]]


def test_a_state_with_another_number_of_shards_is_refused() -> None:
    _, state = in_world(1, lambda: stream_loader(Sharded([[1, 2], [3, 4]])))
    with pytest.raises(StateError, match="num_shards=2, this loader num_shards=1"):
        in_world(1, lambda: stream_loader(Sharded([[1, 2, 3, 4]])), state)


# Going on.


def test_a_stream_with_a_state_is_not_read_from_the_beginning() -> None:
    _, state = in_world(2, lambda: stream_loader(Stateful(100), snapshot_every_n_steps=5), steps=18)
    stream = Stateful(100)
    found, _ = in_world(1, lambda: stream_loader(stream, snapshot_every_n_steps=5), state, steps=1)
    assert found == [[[72], [73], [74], [75]]]
    assert stream.reads == (18 - 15 + 1) * 4


@pytest.mark.parametrize("kind", [Plain, Stateful])
def test_a_stream_that_gives_other_samples_than_before_is_noticed(kind: type[Plain]) -> None:
    class Changed(kind):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[int]:
            return (number + 1 for number in super().__iter__())

    _, state = in_world(1, lambda: stream_loader(kind(100)), steps=12)
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(StateError, match="its samples in step 11 are"),
    ):
        in_world(1, lambda: stream_loader(Changed(100)), state)


def test_workers_that_get_other_samples_are_noticed() -> None:
    def work(rank: int) -> Steps:
        class Divided(Plain):
            def __iter__(self) -> Iterator[int]:
                return islice(super().__iter__(), rank, None, 2)

        return read(stream_loader(Divided(100)))

    with pytest.raises(RuntimeError, match="in step 0 of epoch 0: rank 1 gets others than rank 0"):
        together(2, work)


def test_after_an_error_of_the_stream_the_step_is_read_again(place: Place) -> None:
    class Failing(Plain):
        failures = 1

        def __iter__(self) -> Iterator[int]:
            for number in super().__iter__():
                if number == 6 and self.failures:
                    self.failures -= 1
                    raise OSError("connection lost")
                yield number

    loader = stream_loader(Failing(12))
    with pytest.raises(OSError, match="connection lost"):
        read(loader)
    assert loader.position == 1
    assert read(loader) == [[[4], [5], [6], [7]], [[8], [9], [10], [11]]]


def test_reading_leaves_the_random_numbers_of_the_script_alone(place: Place) -> None:
    for loader in (stream_loader(Augmented(8)), stream_loader(list(range(8)), shuffle=False)):
        drawn = []
        for step in loader:
            list(step)
            assert loader.is_ending == (step.index == 1)
            drawn.append(random.random())
    first, second = drawn
    assert first != second
    loader = stream_loader(Augmented(8))
    found = []
    for step in loader:
        list(step)
        found.append(random.random())
    assert found == drawn


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_loading_process_reads_ahead(place: Place) -> None:
    stream = Stateful(23)
    loader = stream_loader(stream, 7, 2, num_workers=1, snapshot_every_n_steps=2)
    expected = read(stream_loader(Stateful(23), 7, 2))
    found = read(loader, 3)
    state = loader.state_dict()
    assert state["snapshot"] == {
        "epoch": 0,
        "step": 2,
        "samples": [state["snapshot"]["samples"][0]],
        "states": [{"given": 14, "epoch": 0}],
    }
    place.membership += 1
    assert found + read(loader) == expected
    assert stream.reads == 0  # in this process
    assert [1000 + n for n in chain(*chain(*expected))] == list(chain(*chain(*read(loader))))


# What is known and what is refused.


def test_a_stream_with_a_length_has_a_number_of_steps(place: Place) -> None:
    class Sized(Plain):
        def __len__(self) -> int:
            return self.length

    assert len(stream_loader(Sized(9))) == 3
    with pytest.raises(TypeError, match="the steps of an epoch of Plain are not known before its end"):
        len(stream_loader(Plain(9)))


def test_an_empty_stream_has_no_steps(place: Place) -> None:
    loader = stream_loader(Plain(0))
    with pytest.warns(UserWarning, match="Plain gave no sample in epoch [01], so the epoch has no step"):
        assert read(loader) == read(loader) == []
    assert loader.epoch == 2


@pytest.mark.parametrize(
    "stream, options, message",
    [
        (iter([1, 2]), {}, "a list_iterator, an iterator, which is used up after one epoch"),
        (Plain(3), {"shuffle": True}, "shuffle given with a Plain, a stream, whose samples have no numbers"),
        (Plain(3), {"sampler": [1, 2]}, "sampler given with a Plain"),
        (Plain(3), {"effective_batch_size": None, "batch_sampler": [[1, 2]]}, "batch_sampler given with"),
        (Plain(3), {"effective_batch_size": None}, "give effective_batch_size, the samples of one"),
        (Plain(3), {"snapshot_every_n_steps": 0.5}, "snapshot_every_n_steps=0.5 is a float"),
        ([1, 2], {"snapshot_every_n_steps": 5}, "snapshot_every_n_steps=5 is for streams, and a list has"),
    ],
)
def test_what_a_stream_cannot_be_loaded_with_is_refused(
    stream: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        ElasticDataLoader(stream, **{"effective_batch_size": 2} | options)


def test_a_stream_has_one_loading_process() -> None:
    with pytest.warns(UserWarning, match="num_workers=4: a stream is read by one loading process") as warned:
        ElasticDataLoader(Plain(3), 4, num_workers=4)
    assert [each.filename for each in warned] == [__file__]


def test_a_state_of_a_stream_that_has_none_is_refused(place: Place) -> None:
    loader = stream_loader(Stateful(20), snapshot_every_n_steps=1)
    read(loader, 2)
    other = stream_loader(Plain(20), snapshot_every_n_steps=1)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match="has a state of its stream, but Plain has no state_dict"):
        read(other)
