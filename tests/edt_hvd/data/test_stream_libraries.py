"""Tests of the loader on streams of Hugging Face's datasets, and on torchdata's loader."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import datasets
import pytest
from datasets.distributed import split_dataset_by_node
from torchdata.stateful_dataloader import StatefulDataLoader

from edt_hvd.data.loader import ElasticDataLoader
from streams import Stateful, Steps, alone, in_world, stream_loader

ROWS = 90


def numbers(parts: list[int]) -> Iterator[dict[str, int]]:
    for part in parts:
        yield from ({"number": 1000 * part + n} for n in range(ROWS // 6))


def generated() -> datasets.IterableDataset:
    return datasets.IterableDataset.from_generator(numbers, gen_kwargs={"parts": list(range(6))})


def of_rows(num_shards: int) -> datasets.IterableDataset:
    rows = datasets.Dataset.from_dict({"number": list(range(ROWS))})
    return rows.to_iterable_dataset(num_shards=num_shards)


MAKERS: dict[str, Callable[[], Any]] = {
    "one shard": lambda: of_rows(1),
    "shuffled": lambda: of_rows(5).shuffle(seed=3, buffer_size=8),
    "mapped": lambda: (
        generated().map(lambda row: {"number": row["number"] + 1}).filter(lambda row: row["number"] % 7)
    ),
}


def numbers_of(steps: Steps) -> list[list[int]]:
    return [[row["number"] for row in chain(*step)] for step in steps]


@pytest.mark.filterwarnings("ignore:the state of IterableDataset does not bring back:UserWarning")
@pytest.mark.parametrize("kind", MAKERS)
def test_resizes_change_nothing(kind: str) -> None:
    def make() -> ElasticDataLoader:
        return stream_loader(MAKERS[kind](), 6, 1, snapshot_every_n_steps=3)

    expected = numbers_of(alone(MAKERS[kind](), 6, 1))
    state, taken = None, list[list[int]]()
    for generation, (size, steps) in enumerate([(2, 4), (3, 1), (1, 5), (4, 40)]):
        found, state = in_world(size, make, state, steps, membership=generation)
        taken += numbers_of(found)
    assert taken == expected
    assert state["epoch"] == 1
    all_numbers = sorted(chain(*taken))
    assert len(set(all_numbers)) == len(all_numbers)
    assert len(all_numbers) == ROWS if kind != "mapped" else len(all_numbers) < ROWS


def test_a_stream_that_is_divided_by_node_is_refused() -> None:
    divided = split_dataset_by_node(of_rows(4), rank=0, world_size=2)
    with pytest.raises(TypeError, match="split_dataset_by_node divides the stream among ranks"):
        stream_loader(divided)


warned_of = pytest.mark.filterwarnings("ignore:.set_vital. is deprecated:UserWarning")
"""torchdata calls it."""


@warned_of
def test_the_options_of_a_stateful_loader_are_taken_over() -> None:
    loader = StatefulDataLoader(Stateful(23), batch_size=7, snapshot_every_n_steps=2, collate_fn=list)
    found, state = in_world(1, lambda: ElasticDataLoader(loader, micro_batch_size=2), steps=3)
    assert list(chain(*chain(*found))) == list(range(21))
    assert (state["effective_batch_size"], state["snapshot"]["step"]) == (7, 2)


@warned_of
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_stateful_loader_of_a_dataset_with_numbers_is_taken_over(shuffle: bool) -> None:
    loader = StatefulDataLoader(list(range(23)), batch_size=7, shuffle=shuffle, collate_fn=list)
    first, state = in_world(3, lambda: ElasticDataLoader(loader, micro_batch_size=2), steps=2)
    rest, _ = in_world(2, lambda: ElasticDataLoader(loader, micro_batch_size=2), state)
    found = [list(chain(*step)) for step in first + rest]
    assert list(map(len, found)) == [7, 7, 7, 2]
    assert (list(chain(*found)) == list(range(23))) is not shuffle
    assert sorted(chain(*found)) == list(range(23))
