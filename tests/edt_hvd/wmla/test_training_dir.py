import os
from pathlib import Path

import pytest
import torch

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import saving
from edt_hvd.wmla.training_dir import Start, TrainingDir

CONFIG = TrainConfig(3, 8, 32, 4, validation_freq=2, seed=2**62 + 1)


def start() -> Start:
    return Start("/a model/main.py", ("--name", "it's"), "/a model", RandomStates.now())


def test_executors_read_what_the_driver_has_written(tmp_path: Path) -> None:
    folder = TrainingDir.of(2, {"RESULT_DIR": str(tmp_path)})
    assert (folder.number, folder.earlier(1).number) == (2, 1)
    given = start()
    expected = torch.rand(3).tolist()
    folder.begin(given, CONFIG)
    found, config = TrainingDir(folder.path).read()
    assert config == CONFIG
    assert (found.script, found.arguments, found.directory) == (
        given.script,
        given.arguments,
        given.directory,
    )
    found.random_states.restore()
    assert torch.rand(3).tolist() == expected


def test_a_training_that_begins_again_has_none_of_the_results_from_before(tmp_path: Path) -> None:
    folder = TrainingDir.of(1, {"RESULT_DIR": str(tmp_path)})
    for _ in range(2):
        folder.begin(start(), CONFIG)
        assert [path.name for path in folder.path.iterdir()] == ["start.json"]
        (folder.path / "results.1.jsonl").touch()


def test_a_result_dir_is_needed() -> None:
    with pytest.raises(WmlaError, match="RESULT_DIR is not set"):
        TrainingDir.of(1, {})


@pytest.mark.parametrize("has_links", [True, False])
def test_the_final_model_stays_when_the_next_one_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", unlinked)
    folder = TrainingDir.of(1, {"RESULT_DIR": str(tmp_path)})
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    before = model.weight.tolist()
    saving.save(tmp_path / "model", saving.FINAL, model, optimizer)
    folder.begin(start(), CONFIG)
    folder.keep_final(tmp_path / "model")
    torch.nn.init.zeros_(model.weight)
    optimizer.param_groups[0]["lr"] = 0.25
    saving.save(tmp_path / "model", saving.FINAL, model, optimizer)
    saving.load_final(folder.model_dir, model, optimizer)
    assert model.weight.tolist() == before
    assert optimizer.param_groups[0]["lr"] == 0.5


def unlinked(*_: object) -> None:
    raise OSError("no links here")
