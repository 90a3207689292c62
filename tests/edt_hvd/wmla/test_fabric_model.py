import json
import random
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from edt_hvd.wmla import FabricModel, UnsupportedError
from small_programs import (
    Halving,
    Network,
    Points,
    Remembering,
    RememberingNames,
    datasets,
    make,
    own_step,
    own_test,
    weights,
    without_test,
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


def test_both_vocabularies(job: Path) -> None:
    FabricModel(**constructor(), driver_logger=Remembering(), enable_onnx=False, fn_test=own_test)
    FabricModel(
        **constructor(), driver_logger_callback=Remembering(), save_to_onnx=True, fn_step_test=own_test
    )
    FabricModel(*constructor().values(), worker_logger_callback=None, keras_custom_objects=None, metrics=None)


@pytest.mark.parametrize(
    "twice", [{"driver_logger": None, "driver_logger_callback": None}, {"save_to_onnx": 1, "enable_onnx": 1}]
)
def test_both_names_of_one_argument(job: Path, twice: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"is the same as .*; give one of them"):
        FabricModel(**constructor(), **twice)


def test_unknown_arguments_are_left_out_with_a_warning(job: Path) -> None:
    with pytest.warns(UserWarning, match="FabricModel does not know sync_mode, turbo; left out"):
        FabricModel(**constructor(), turbo=1, sync_mode="ps")


@pytest.mark.parametrize(
    "change,words",
    [
        ({"model": lambda x: x}, "model is a function; give a torch.nn.Module"),
        (
            {"model": torch.nn.LazyLinear(3)},
            "weight of the model has no shape yet, .* run the model on one batch",
        ),
        ({"optimizer": object()}, "optimizer is a object"),
        (
            {"optimizer": torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)},
            "1 of the optimizer's parameters",
        ),
        (constructor(torch.optim.LBFGS), "LBFGS computes the loss several times in a step"),
        (constructor(torch.optim.SparseAdam), "SparseAdam needs sparse gradients, .* use Adam"),
        (
            constructor(network=torch.nn.Sequential(torch.nn.Embedding(3, 2, sparse=True))),
            "0 is an Embedding with sparse gradients, .* make it with sparse=False",
        ),
        ({"datasets_function": 3}, "datasets_function is a int; give a function"),
        ({"optimizer": None}, "FabricModel needs optimizer as well"),
        ({"metrics": ["auc"]}, "metrics has 'auc'; give functions"),
        (
            {"driver_logger": type("Odd", (), {"log_test_metrics": lambda self, x: None})()},
            "Odd.log_test_metrics",
        ),
        ({"user_callback": 3}, "user_callback has 3; give a list of objects with hooks"),
        ({"user_callback": [Halving]}, "user_callback has <class '.*Halving'>; give a list of objects"),
        (
            {"user_callback": type("Tight", (), {"__slots__": (), "on_train_end": print})()},
            "user_callback has a Tight, which has no __dict__",
        ),
    ],
)
def test_what_cannot_be_trained_is_named(job: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        FabricModel(**{**constructor(), **change})


def test_optimizers_and_layers_of_other_kinds_are_taken(job: Path) -> None:
    class Own(torch.optim.SGD):
        def step(self) -> None:  # type: ignore[override]
            """Knows no closure."""

    frozen = torch.nn.Embedding.from_pretrained(torch.ones(2, 3), sparse=True)
    FabricModel(**constructor(Own, torch.nn.Sequential(frozen, torch.nn.Linear(3, 1))))


def test_keras_is_refused(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("keras")
    model = type("Sequential", (), {"__module__": "keras.engine"})()
    with pytest.raises(UnsupportedError, match=r"keras.engine.Sequential: EDT trains PyTorch models only"):
        FabricModel(model, datasets, loss_function="categorical_crossentropy", optimizer=package)
    monkeypatch.setenv("FABRIC_BACKEND", "tensorflow")
    with pytest.raises(UnsupportedError, match="FABRIC_BACKEND=tensorflow: EDT trains PyTorch models only"):
        FabricModel(**constructor())


# Training in this process.


def test_a_callback_need_not_be_in_a_list(job: Path) -> None:
    callback = Halving()
    make(user_callback=callback)[0].train(EPOCHS, BATCH_SIZE, ENGINES)
    assert callback.epochs == [0, 1]


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


def test_a_training_leaves_the_script_its_random_numbers(job: Path) -> None:
    program, *_ = make()
    random.seed(5)
    before = torch.initial_seed(), torch.get_rng_state().tolist(), random.getstate()
    program.train(1, BATCH_SIZE, ENGINES)
    assert (torch.initial_seed(), torch.get_rng_state().tolist(), random.getstate()) == before


def test_no_periodic_models(job: Path) -> None:
    program, *_ = make()
    program.train(1, BATCH_SIZE, ENGINES, checkpoint_freq=0, validation_freq=10)
    names = {file.name for file in (job / "model" / "train").iterdir()}
    assert names == {"model_epoch_final.pth", "model_epoch_final_optimizer_state.pth"}
    assert "Test" not in (job / "log" / "stdout").read_text()


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


def test_values_are_running_means_and_percent(job: Path) -> None:
    logger = RememberingNames()

    def largest(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return output.max()

    program, *_ = make(driver_logger=logger, metrics=[largest, "accuracy"])
    program.train(EPOCHS, BATCH_SIZE, ENGINES)
    metrics, iteration, epoch = logger.train[BATCHES - 1]
    assert (iteration, epoch) == (BATCHES, 0)
    assert list(metrics) == ["loss", "accuracy", "largest"]
    assert (metrics["accuracy"] * 75 / 100) == pytest.approx(round(metrics["accuracy"] * 75 / 100), abs=1e-4)
    assert all(0 <= row["accuracy"] <= 100 for row, *_ in logger.train)
    assert [(iteration, epoch) for _, iteration, epoch in logger.test] == [(0, 0), (0, 1)]
    assert list(logger.test[0][0]) == ["loss", "accuracy", "largest"]


def test_worker_loggers_have_their_own_mini_batches(job: Path) -> None:
    logger = RememberingNames()
    program, *_ = make(worker_logger=logger)
    program.train(1, BATCH_SIZE, ENGINES)
    assert [iteration for _, iteration, _ in logger.train] == list(range(1, BATCHES + 1))


@pytest.mark.parametrize("function", [without_test, lambda: (Points(75, 0), None)])
def test_without_a_test_set_nothing_is_validated(
    job: Path, capsys: pytest.CaptureFixture[str], function: Any
) -> None:
    logger = Remembering()
    program, *_ = make(function, driver_logger=logger)
    program.train(1, BATCH_SIZE, ENGINES)
    assert not logger.test
    assert capsys.readouterr().out.count("no validation") == 1


def test_data_sets_of_less_than_a_mini_batch(job: Path) -> None:
    logger = Remembering()
    program, *_ = make(lambda: (Points(5, 0), Points(1, 0)), driver_logger=logger)
    program.train(2, BATCH_SIZE, ENGINES)
    assert (len(logger.train), len(logger.test)) == (2, 2)


@pytest.mark.parametrize(
    "function,words",
    [
        (lambda: Points(5, 0), "returned a Points; return"),
        (lambda: (Points(0, 0), None), "train set without samples"),
        (lambda: (iter([]), iter([])), "train set of type list_iterator"),
        (lambda: ([{"x": 1}], None), "a batch is a dict"),
    ],
)
def test_data_that_cannot_be_trained_on(job: Path, function: Any, words: str) -> None:
    program, *_ = make(function)
    with pytest.raises((TypeError, ValueError), match=words):
        program.train(1, BATCH_SIZE, ENGINES)


def test_training_goes_on_with_a_second_call(job: Path) -> None:
    logger = Remembering()
    program, network, _ = make(driver_logger=logger)
    program.train(1, BATCH_SIZE, ENGINES)
    before = weights(network)
    program.train(1, BATCH_SIZE, ENGINES)
    assert weights(network) != before
    assert logger.ended == 2


def test_loading_processes_change_nothing(job: Path) -> None:
    program, one, _ = make()
    program.train(1, BATCH_SIZE, ENGINES)
    program, other, _ = make(fn_batch_collate=torch.utils.data.default_collate)
    program.train(1, BATCH_SIZE, ENGINES, num_dataloader_threads=1)
    assert weights(one) == weights(other)


def test_several_inputs(job: Path) -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(16, 3)

        def forward(self, one: torch.Tensor, other: dict[str, torch.Tensor]) -> torch.Tensor:
            found: torch.Tensor = self.fc(torch.cat([one, other["x"]], dim=1))
            return found

    samples = [(inputs, {"x": inputs}, label) for inputs, label in Points(20, 0)]  # type: ignore[attr-defined]
    model = Both()
    program = FabricModel(
        model, lambda: (samples, samples), torch.nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters())
    )
    program.train(1, BATCH_SIZE, ENGINES)
    assert (job / "model" / "train" / "model_epoch_final.pth").exists()


def test_settings_that_others_decide_about(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *_ = make()
    spec = {"nodes": {"num_nodes": 2}}
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"train\(\) does not know turbo"):
            program.train(1, 64, 2, worker_memory="16G", driver_memory="1G", hardware_spec=spec, turbo=True)
    said = capsys.readouterr().err
    assert said.count("worker_memory") == said.count("hardware_spec") == 1


# The result.


def test_onnx(job: Path) -> None:
    import onnx

    program, *_ = make(enable_onnx=True)
    program.train(1, BATCH_SIZE, ENGINES)
    onnx.checker.check_model(onnx.load(job / "model" / "train" / "model_epoch_final.onnx"))


def test_a_model_that_onnx_cannot_have_is_trained_all_the_same(job: Path) -> None:
    class Odd(Network):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return super().forward(inputs) * len(json.dumps(inputs.tolist()))

    model = Odd()
    program = FabricModel(
        model,
        datasets,
        torch.nn.CrossEntropyLoss(),
        torch.optim.SGD(model.fc.parameters(), 1e-9),
        save_to_onnx=True,
    )
    with pytest.warns(UserWarning, match="the model was not written as model_epoch_final.onnx"):
        program.train(1, 64, 1)
    assert (job / "model" / "train" / "model_epoch_final.pth").exists()
    assert not list((job / "model" / "train").glob("*onnx*"))


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


def test_nothing_is_imported_that_training_does_not_need() -> None:
    assert "tensorflow" not in sys.modules
