"""Drivers and executors as processes, with a stand-in for edt-launch between them."""

import sys
from pathlib import Path

import pytest

from stand_in import StandIn

PROGRAMS = Path(__file__).parent / "programs"
MAIN = PROGRAMS / "main.py"
MPIRUN = (str(Path(sys.executable).parent / "mpirun"), "--oversubscribe", "-np")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As edt-launch --wmla makes it, for the driver and the executors alike."""
    import edt_hvd.wmla

    monkeypatch.setenv("FABRIC_HOME", str(Path(edt_hvd.wmla.__file__).parent / "fabric_home"))


def stand_in(folder: Path, *prefix: str) -> StandIn:
    (folder / "log").mkdir(parents=True)
    return StandIn(folder, prefix)


def result(folder: Path) -> tuple[bytes, str]:
    """What must not depend on who has computed it: the model, and what the logger was told."""
    return (folder / "model" / "train" / "model_epoch_final.pth").read_bytes(), (
        folder / "log" / "stdout"
    ).read_text()


@pytest.mark.usefixtures("environment")
def test_one_three_and_no_executors_train_the_same_model(tmp_path: Path) -> None:
    one, three = stand_in(tmp_path / "one"), stand_in(tmp_path / "three", *MPIRUN, "3")
    assert one.run(MAIN) == 0, one.printed
    assert three.run(MAIN, "--custom") == 0, three.printed
    assert result(one.folder) == result(three.folder)
    assert one.printed.count("script runs") == three.printed.count("script runs") == 1
    assert "datasets made" not in three.printed
    executors = (three.folder / "executors.log").read_text()
    assert executors.count("datasets made") == 3
    assert "script runs" not in executors
    assert "after" not in executors
    assert (three.folder / "executor" / "before-train.log").read_text().count("script runs") == 3
    after = [line for line in one.printed.splitlines() if line.startswith("after 0.025 ")]
    assert after == [line for line in three.printed.splitlines() if line.startswith("after ")]
    (asked,) = one.messages
    folder = one.folder / "run" / "wmla" / "training-1"
    assert asked["program"][1:] == ["-m", "edt_hvd.wmla.executor", str(MAIN), str(folder)]
    assert (asked["number"], asked["max_workers"]) == (1, 5)
    assert (one.folder / "log" / "evaluation-metrics.txt").exists()


@pytest.mark.full
@pytest.mark.usefixtures("environment")
def test_a_script_may_train_again(tmp_path: Path) -> None:
    job = stand_in(tmp_path / "job")
    assert job.run(MAIN, "--epochs", "1", "--again") == 0, job.printed
    assert [message["number"] for message in job.messages] == [1, 2]
    assert (job.folder / "log" / "stdout").read_text().count("Train") == 24


@pytest.mark.usefixtures("environment")
def test_what_ends_the_executors_ends_the_script(tmp_path: Path) -> None:
    job = stand_in(tmp_path / "job")
    assert job.run(MAIN, "--fail") == 1
    assert "TrainingFailedError: the training ended with exit code 1: " in job.printed
    assert "no such file: digit" in job.printed
    refused = stand_in(tmp_path / "refused")
    refused.refuse = "no slot came free"
    assert refused.run(MAIN) == 1
    assert "exit code 1: no slot came free" in refused.printed


@pytest.mark.usefixtures("environment")
def test_a_program_for_keras_ends_with_a_clear_word(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("import keras\n")
    job = stand_in(tmp_path / "job")
    assert job.run(script) == 1
    assert "No module named 'keras'" in job.printed
    assert job.printed.rstrip().splitlines()[-1].startswith("EDT trains PyTorch models only")


SCALING = """
import torch
from fabric_model import FabricModel

def wanted(epoch, most):
    return {0: 2, 1: 2, 2: "all", 3: 1}[epoch]

model = torch.nn.Linear(2, 2)
samples = [(torch.ones(2), index % 2) for index in range(8)]
loss = torch.nn.functional.cross_entropy
program = FabricModel(model, lambda: (samples, None), loss, torch.optim.SGD(model.parameters(), 0.1))
program.train(4, 2, 4, scaleup_function=wanted)
"""


@pytest.mark.full
def test_the_number_of_executors_may_change_before_every_epoch(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(SCALING)
    job = stand_in(tmp_path / "job")
    assert job.run(script) == 0, job.printed
    first, *others = job.messages
    assert first["max_workers"] == 4
    assert others == [{"do": "limit", "max_workers": 2}, {"do": "limit", "max_workers": 1}]
    assert "scaleup_function(2, 4) returned 'all'" in job.printed


def test_a_users_own_module_wins(tmp_path: Path) -> None:
    (tmp_path / "emetrics.py").write_text("EMetrics = 'mine'\n")
    script = tmp_path / "main.py"
    script.write_text(
        "from emetrics import EMetrics\nimport callbacks, pyedt.fabric_model\nprint(EMetrics)\n"
    )
    job = stand_in(tmp_path / "job")
    assert job.run(script) == 0
    assert job.printed == "mine\n"
