"""Drivers and executors as processes, with a stand-in for edt-launch between them."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_hvd.wmla import driving
from edt_hvd.wmla.errors import TrainingFailedError
from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.launching import Launcher
from edt_hvd.wmla.logs.loggers import Logger
from edt_hvd.wmla.logs.result_log import ResultLog, ToLogger
from edt_hvd.wmla.results import Begun, Failed, MiniBatch, Record, StepDone, TrainingDone, encode
from edt_messages import wmla
from small_programs import RememberingNames


class Following:
    """A driver that follows results, with the launcher's end of its socket."""

    def __init__(self, folder: TrainingDir) -> None:
        self.ours, theirs = socket.socketpair()
        self.launcher, self.folder = Launcher(theirs), folder
        folder.begin()
        self.logger = RememberingNames()
        self.log = ResultLog([ToLogger(Logger(self.logger), ())])

    def write(self, *messages: Record) -> None:
        for message in messages:
            self.ours.sendall(wmla.encode(wmla.ExecutorMessage(1, encode(message))))
        if TrainingDone() in messages:
            self.folder.outcome.touch()

    def end(self, exit_code: int = 0) -> None:
        self.ours.sendall(wmla.encode(wmla.Ended(1, exit_code, "so it ended")))

    def follow(self) -> None:
        driving._follow(self.launcher, self.folder, self.log, driving.Limit(self.launcher, 16))

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


def test_a_training_that_fails_is_read_to_its_end(following: Following) -> None:
    following.write(Begun(3, 1), step_done(0))
    following.end(exit_code=7)
    with pytest.raises(TrainingFailedError, match="ended with exit code 7: so it ended") as caught:
        following.follow()
    assert caught.value._render_traceback_() == [f"TrainingFailedError: {caught.value}"]  # in notebooks
    assert following.iterations == [1]


def test_what_another_host_has_written_is_waited_for(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.write(Begun(3, 1), step_done(0))
    following.end()
    monkeypatch.setattr("time.sleep", lambda _: following.folder.outcome.touch())
    with pytest.warns(UserWarning, match="the last results of the training were lost with an executor"):
        following.follow()
    assert following.iterations == [1]


def test_executors_that_end_without_an_outcome_have_failed(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.end()
    monkeypatch.setattr(driving, "UNSEEN", 0.0)
    with pytest.raises(
        TrainingFailedError, match=r"exit code 0, but 0 s later there is no .*outcome.pt: none"
    ):
        following.follow()


def test_more_executors_than_mini_batches_of_an_epoch_are_not_asked_for(following: Following) -> None:
    following.write(Begun(3, 16), step_done(0), TrainingDone())
    following.end()
    following.follow()
    assert json.loads(following.ours.recv(100)) == {"type": "limit", "max_workers": 3}


def test_the_same_exception_twice_ends_a_training(following: Following) -> None:
    following.write(Begun(16, 1), *map(Failed, ("OSError: a", "OSError: b", "OSError: a")))
    with pytest.raises(TrainingFailedError, match="executors failed twice in the same way: OSError: a"):
        following.follow()
