import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from edt_hvd.wmla import FabricModel
from small_programs import (
    Halving,
    Network,
    Remembering,
    datasets,
    make,
    own_step,
    own_test,
    weights,
)

# Three steps an epoch, with four, four and two mini-batches, the last of them with three samples.
EPOCHS, BATCH_SIZE, ENGINES = 2, 8, 4
BATCHES = 10


def constructor(kind: Any = torch.optim.SGD, network: torch.nn.Module | None = None) -> dict[str, Any]:
    network = network or Network()
    return {
        "model": network,
        "datasets_function": datasets,
        "loss_function": torch.nn.functional.cross_entropy,
        "optimizer": kind(list(network.parameters())[-2:], lr=0.1),
    }


# The constructor.


@pytest.mark.parametrize(
    "change,words",
    [
        ({"model": lambda x: x}, "model is a function; give a torch.nn.Module"),
        (
            {"model": torch.nn.LazyLinear(3)},
            "weight of the model has no shape yet, .* run the model on one batch",
        ),
        (
            {"optimizer": torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)},
            "1 of the optimizer's parameters",
        ),
        (constructor(torch.optim.LBFGS), "LBFGS computes the loss several times in a step"),
        (constructor(torch.optim.SparseAdam), "SparseAdam needs sparse gradients, .* use Adam"),
        ({"optimizer": None}, "FabricModel needs optimizer as well"),
        ({"user_callback": [Halving]}, "user_callback has <class '.*Halving'>; give a list of objects"),
    ],
)
def test_what_cannot_be_trained_is_named(job: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        FabricModel(**{**constructor(), **change})


# Training in this process.


def test_what_a_training_leaves_behind(job: Path) -> None:
    logger, callback = Remembering(), Halving()
    program, network, optimizer = make(driver_logger=logger, user_callback=[callback])
    frozen = network.frozen.weight.clone()
    program.train(EPOCHS, BATCH_SIZE, ENGINES, checkpoint_freq=2)
    train = job / "model" / "train"
    assert sorted(file.name for file in train.iterdir()) == [
        "model_epoch_2.pth",
        "model_epoch_2_optimizer_state.pth",
        "model_epoch_final.pth",
        "model_epoch_final_optimizer_state.pth",
    ]
    saved = torch.load(train / "model_epoch_final.pth")
    assert list(saved) == list(network.state_dict())
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in saved.items())
    assert torch.equal(network.frozen.weight, frozen)
    assert [batch for *_, batch in logger.train] == list(range(1, EPOCHS * BATCHES + 1))
    assert (len(logger.test), logger.ended) == (EPOCHS, 1)
    assert callback.epochs == [0, 1]
    assert callback.rates == [0.1, 0.05]
    assert callback.saves == [False, True]
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert list((job / "log" / "tb").iterdir())


def test_the_programs_own_step_trains_the_same_model(job: Path) -> None:
    plain, own = Remembering(), Remembering()
    program, one, _ = make(driver_logger=plain)
    program.train(EPOCHS, BATCH_SIZE, ENGINES)
    program, other, _ = make(driver_logger=own, fn_step_train=own_step, fn_test=own_test)
    program.train(EPOCHS, BATCH_SIZE, ENGINES)
    assert weights(one) == weights(other)
    assert plain.train == own.train
    assert [row[1:] for row in plain.test] == [row[1:] for row in own.test]
    assert [row[0] for row in plain.test] == pytest.approx([row[0] for row in own.test])


# The result.


def test_download(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *_ = make()
    with pytest.raises(FileNotFoundError, match=r"no trained model in .*; call train\(\) first"):
        program.download()
    program.train(1, BATCH_SIZE, ENGINES)
    path = program.download(out_dir=tmp_path / "out")
    assert path == tmp_path / "out" / "wmla-7.zip"
    assert f"Save model: {path}" in capsys.readouterr().out
    names = zipfile.ZipFile(path).namelist()
    assert {"model/train/model_epoch_final.pth", "val_dict_list.json"} <= set(names)
