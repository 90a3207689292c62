import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, get_worker_info

import edt_hvd
from crew import together
from edt_hvd.world import world

pytestmark = [
    pytest.mark.usefixtures("alone"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

Drawn = tuple[float, float, float]


def draw() -> Drawn:
    return torch.rand(()).item(), float(np.random.rand()), random.random()


class Augmented(Dataset[tuple[int, Drawn]]):
    """Sample i is i and what its augmentation drew."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[int, Drawn]:
        return index, draw()


def by_sample(loader: edt_hvd.ElasticDataLoader) -> dict[int, Drawn]:
    """What every sample of the epoch's rest drew, on this worker."""
    return dict(sample for step in loader for micro_batch in step for sample in micro_batch)


def loader_of(dataset: Any, micro: int = 2, processes: int = 0, **options: Any) -> edt_hvd.ElasticDataLoader:
    return edt_hvd.ElasticDataLoader(dataset, 6, micro, num_workers=processes, collate_fn=list, **options)


@pytest.fixture
def drawn() -> dict[int, Drawn]:
    return by_sample(loader_of(Augmented(14)))


class Own(Dataset[float]):
    """Draws from a generator of its own: three of four samples, half of the time."""

    def __init__(self, seed: int) -> None:
        self.draws = random.Random(seed)

    def __len__(self) -> int:
        return 14

    def __getitem__(self, index: int) -> float:
        return float(index) + (index % 4 > 0 and self.draws.random() < 0.5)


@pytest.mark.parametrize(
    "datasets, expected",
    [
        ([list(range(14)), list(range(14))], None),
        ([Own(1), Own(2)], None),
        (
            [torch.arange(14).split(1), torch.arange(14).flip(0).split(1)],
            r"dataset\[0\] is int64\[1\] of 0 \(\w+\) on rank 0 and int64\[1\] of 13 \(\w+\) on rank 1",
        ),
        (
            [[[i, 7] for i in range(14)], [[i, 7 + i // 5] for i in range(14)]],
            r"the sample dataset\[5\]\[1\] is 7 on rank 0 and 8 on rank 1\. .* leave out of a sample what",
        ),
    ],
)
def test_some_samples_are_compared_first_in_a_world(datasets: list[Any], expected: str | None) -> None:
    fetched = []

    def work(rank: int) -> Any:
        loader = loader_of(datasets[rank], shuffle=False)
        for at in (loader._position(), loader._position()._replace(step=1)):
            batch = loader._source.batch(at)
            assert batch is not None
            compare = loader._source.comparison(at)
            fetched.append(list(loader._source.load(at, batch)))
            if compare is not None:
                compare()
        return compare

    if expected is not None:
        with pytest.raises(RuntimeError, match=expected):
            together(2, work)
        return
    assert together(2, work) == [None, None]
    assert sum(map(len, fetched)) == 6


def test_every_sample_draws_numbers_of_its_own(drawn: dict[int, Drawn]) -> None:
    assert sorted(drawn) == list(range(14))
    assert all(len(set(numbers)) == 14 for numbers in zip(*drawn.values(), strict=True))


@pytest.mark.parametrize("micro, processes", [(1, 0), (6, 2)])
def test_a_sample_draws_the_same_in_any_process_and_micro_batch(
    drawn: dict[int, Drawn], micro: int, processes: int
) -> None:
    torch.manual_seed(99)
    assert by_sample(loader_of(Augmented(14), micro, processes)) == drawn


def test_repeats_of_a_sample_draw_numbers_of_their_own() -> None:
    """Repeated augmentation and oversampling: several views of a sample, collated apart, too."""
    loader = loader_of(Augmented(4), 2, sampler=[0, 1, 1, 1, 2, 1, 1, 3])
    drawn = [sample for step in loader for micro_batch in step for sample in micro_batch]
    assert [index for index, _ in drawn] == [0, 1, 1, 1, 2, 1, 1, 3]
    assert len({numbers for _, numbers in drawn}) == 8
    collated = edt_hvd.ElasticDataLoader([0, 0, 0], 3, 1, shuffle=False, collate_fn=lambda _: [draw()])
    assert len({numbers for step in collated for each in step for numbers in each}) == 3


@pytest.fixture
def resized(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    def to(rank: int, size: int) -> None:
        monkeypatch.setattr(world, "rank", lambda: rank)
        monkeypatch.setattr(world, "size", lambda: size)

    return to


@pytest.mark.parametrize("processes", [0, 1])
def test_a_sample_draws_the_same_on_any_worker_and_after_a_resize(
    drawn: dict[int, Drawn], resized: Callable[[int, int], None], processes: int
) -> None:
    found: dict[int, Drawn] = {}
    sizes = [2, 3, 1]
    for rank in range(3):
        loader = loader_of(Augmented(14), 2, processes)
        steps = iter(loader)
        for size in sizes:
            if rank < size:
                resized(rank, size)
                found |= dict(sample for micro_batch in next(steps) for sample in micro_batch)
            else:  # not part of this world: it joins later, with the others' position
                loader.load_state_dict(loader.state_dict() | {"step": loader.position + 1})
                steps = iter(loader)
    assert found == drawn


def test_an_optimizers_first_step_in_a_world_compares_samples(resized: Callable[[int, int], None]) -> None:
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1))
    resized(0, 2)
    loader, compared = loader_of(Augmented(14)), list[int]()
    loader._source._compare = lambda at: compared.append(at.step)
    list(next(iter(loader)))
    assert compared == [0]
    del optimizer


def test_a_collate_function_draws_the_same_wherever_it_runs() -> None:
    def collated(samples: list[Any]) -> list[tuple[int, Drawn]]:
        return [(int(samples[0][0]), draw())]

    dataset = TensorDataset(torch.arange(12))  # reading it draws nothing

    def epoch(processes: int) -> dict[int, Drawn]:
        loader = edt_hvd.ElasticDataLoader(dataset, 6, 2, num_workers=processes, collate_fn=collated)
        return dict(pair for step in loader for micro_batch in step for pair in micro_batch)

    torch.manual_seed(3)
    first = epoch(0)
    draw()
    assert epoch(2) == first
    assert len(set(first.values())) == 6


@pytest.mark.parametrize(
    "dataset",
    [
        Subset(Augmented(14), range(14)),
        ConcatDataset([Augmented(14), TensorDataset(torch.zeros(0))]),
        Subset(ConcatDataset([TensorDataset(torch.zeros(0)), Subset(Augmented(14), range(14))]), range(14)),
    ],
)
def test_augmentations_inside_torchs_wrappers_are_seeded(dataset: Any, drawn: dict[int, Drawn]) -> None:
    assert by_sample(loader_of(dataset, 3)) == drawn


class Watching(Augmented):
    """Tells what a loading process knows of itself."""

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return info.dataset is self, getattr(self, "prepared", None), info.num_workers


def prepare(worker: int) -> None:
    info = get_worker_info()
    info.dataset.prepared = f"by {worker}"


def test_loading_processes_know_the_users_own_dataset() -> None:
    loader = loader_of(Watching(6), 3, processes=2, worker_init_fn=prepare)
    seen = [sample for step in loader for micro_batch in step for sample in micro_batch]
    assert sorted(set(seen)) == [(True, "by 0", 2), (True, "by 1", 2)]
