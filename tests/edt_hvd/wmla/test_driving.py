"""Drivers and executors as processes, with a stand-in for edt-launch between them."""

import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_hvd.wmla import driving
from edt_hvd.wmla.errors import TrainingFailedError
from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.launching import Launcher
from edt_hvd.wmla.logs.loggers import Logger
from edt_hvd.wmla.logs.result_log import ResultLog, ToLogger
from edt_hvd.wmla.results import Begun, Message, MiniBatch, StepDone, TrainingDone, encode
from small_programs import RememberingNames
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


class Following:
    """A driver that follows results, with the launcher's end of its socket."""

    def __init__(self, folder: TrainingDir) -> None:
        self.ours, theirs = socket.socketpair()
        self.launcher, self.folder = Launcher(theirs), folder
        folder.begin({})
        self.logger = RememberingNames()
        self.log = ResultLog([ToLogger(Logger(self.logger), ())])

    def write(self, *messages: Message) -> None:
        with (self.folder.path / "results.1.jsonl").open("ab") as file:
            file.write(b"".join(map(encode, messages)))
        if TrainingDone() in messages:
            self.folder.outcome.touch()

    def end(self, exit_code: int = 0) -> None:
        message = {"type": "ended", "number": 1, "exit_code": exit_code, "message": "so it ended"}
        self.ours.sendall(json.dumps(message).encode() + b"\n")

    def follow(self) -> None:
        driving._follow(self.launcher, self.folder, self.log)

    @property
    def iterations(self) -> list[int]:
        return [iteration for _, iteration, _ in self.logger.train]


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    one = Following(JobDir(tmp_path).training(1))
    yield one
    one.ours.close()
    one.launcher.close()


def step_done(step: int) -> StepDone:
    return StepDone(0, step, 1, (MiniBatch(1, 0.0, 0.0),))


def test_what_is_written_by_the_end_is_read(following: Following) -> None:
    following.write(Begun(3, 1), step_done(0), step_done(1), TrainingDone())
    following.end()
    following.follow()
    assert following.iterations == [1, 2]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_training_that_fails_is_read_to_its_end(following: Following) -> None:
    following.write(Begun(3, 1), step_done(0))
    following.end(exit_code=7)
    with pytest.raises(TrainingFailedError, match="ended with exit code 7: so it ended"):
        following.follow()
    assert following.iterations == [1]


def test_what_other_hosts_have_written_is_waited_for(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.write(Begun(3, 1), step_done(0))
    following.end()
    monkeypatch.setattr("time.sleep", lambda _: following.write(step_done(1), TrainingDone()))
    following.follow()
    assert following.iterations == [1, 2]


def test_results_that_never_come_are_told(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.write(Begun(3, 1), step_done(0))
    following.folder.outcome.touch()
    following.end()
    monkeypatch.setattr(driving, "UNSEEN", 0.0)
    with pytest.warns(UserWarning, match="the last results of the training are not in"):
        following.follow()


def test_executors_that_end_without_an_outcome_have_failed(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.end()
    monkeypatch.setattr(driving, "UNSEEN", 0.0)
    with pytest.raises(
        TrainingFailedError, match=r"exit code 0, but 0 s later there is no .*outcome.pt: none"
    ):
        following.follow()


def test_a_driver_that_is_told_to_end_gives_the_logger_what_is_written(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EndedError(Exception):
        """What the signal does here."""

    def end(_signal: int) -> None:
        raise EndedError

    following.write(Begun(3, 1), step_done(0))
    raise_signal = signal.raise_signal
    monkeypatch.setattr("signal.raise_signal", end)

    def signalled(*_: object) -> list[object]:
        raise_signal(signal.SIGTERM)
        return []

    monkeypatch.setattr(driving, "wait", signalled)
    with pytest.raises(EndedError):
        following.follow()
    assert following.iterations == [1]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("environment")
def test_one_three_and_no_executors_train_the_same_model(tmp_path: Path) -> None:
    one, three = stand_in(tmp_path / "one"), stand_in(tmp_path / "three", *MPIRUN, "3")
    assert one.run(MAIN) == 0, one.printed
    assert three.run(MAIN, "--custom") == 0, three.printed
    assert result(one.folder) == result(three.folder)
    assert '"workers": 3' in (three.folder / "run/wmla/training-1/results.1.jsonl").read_text()
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


@pytest.mark.full
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
    assert others == [{"type": "limit", "max_workers": 2}, {"type": "limit", "max_workers": 1}]
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
