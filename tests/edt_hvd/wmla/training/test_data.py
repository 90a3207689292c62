import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import edt_hvd
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import data


class Pair(NamedTuple):
    one: torch.Tensor
    other: int


def test_everything_moves_to_the_device() -> None:
    device = torch.device("meta")
    moved = data.moved({"a": [torch.ones(1), (torch.ones(2), "text")], "b": Pair(torch.ones(3), 4)}, device)
    assert moved["a"][0].device == moved["a"][1][0].device == moved["b"].one.device == device
    assert moved["a"][1][1] == "text"
    assert isinstance(moved["b"], Pair)


def test_inputs_and_target() -> None:
    assert data.inputs_and_target([1, 2]) == ((1,), 2)
    assert data.inputs_and_target((1, 2, 3)) == ((1, 2), 3)
    for odd in ({"x": 1, "y": 2}, [1], 5):
        with pytest.raises(TypeError, match="fn_step_train"):
            data.inputs_and_target(odd)


@pytest.mark.usefixtures("alone")
def test_mini_batches_keep_their_size_where_there_are_more_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edt_hvd.world.world.max_size", lambda: 7)
    config = TrainConfig(1, batch_size=4, effective_batch_size=8, max_workers=2)
    samples = [(torch.ones(1), 0)] * 19
    training = data.training_loader(samples, config, None)
    assert [len(y) for step in training for _, y in step] == [4, 4, 4, 4, 3]
    testing = data.test_loader(samples, config, None)
    for epoch in range(2):
        data.rewind(testing, config, epoch)
        assert [step.micro_batches for step in testing for _ in step] == [5] * 5


def test_the_first_process_makes_its_data_sets_alone(tmp_path: Path) -> None:
    running, most, made = 0, list[int](), threading.Semaphore(0)
    lock = threading.Lock()
    together = threading.Barrier(2, timeout=30)

    def function() -> Any:
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        if not made.acquire(blocking=False):
            assert running == 1
            for _ in range(3):
                made.release()
        else:
            together.wait()
        with lock:
            running -= 1
        return [1], None

    threads = [threading.Thread(target=data.make_datasets, args=(function, tmp_path)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert max(most) == 2


def test_public_loaders_are_what_programs_get() -> None:
    config = TrainConfig(1, 4, 8, 2)
    assert isinstance(data.training_loader([(1, 2)], config, None), edt_hvd.ElasticDataLoader)
