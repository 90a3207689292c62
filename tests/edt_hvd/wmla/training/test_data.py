import fcntl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest
import torch

from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import data


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


def test_the_first_process_makes_its_data_sets_alone_and_the_others_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, made, lock_file = threading.Semaphore(0), threading.Event(), fcntl.flock
    together = threading.Barrier(2, timeout=30)

    def flock(file: IO[str], how: int) -> None:
        waiting.release()
        lock_file(file, how)

    def function() -> Any:
        if made.is_set():
            together.wait()
        else:
            for _ in range(3):  # the two others wait for the lock as well
                assert waiting.acquire(timeout=30)
            assert not made.is_set()
            made.set()
        return [1], None

    monkeypatch.setattr(fcntl, "flock", flock)
    with ThreadPoolExecutor(3) as pool:
        for call in [pool.submit(data.make_datasets, function, tmp_path) for _ in range(3)]:
            call.result()
