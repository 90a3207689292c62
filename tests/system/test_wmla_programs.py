"""Programs written for WMLA run as they are, and train the same model whatever the number of workers."""

import functools
import io
import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import onnx
import pandas as pd
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tiers import full
from wmla_harness import Trained, job_in, model_digests, train, train_plainly, train_resized, train_with
from wmla_programs import DIGITS, ELASTIC, GLOBALS, IMAGES, SEQUENCES, STEPS, Program

pytestmark = pytest.mark.timeout(900)

LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] (Train|Test),\tTimestamp: \d+,\t"
    r"(Global steps: \d+,\tIteration: \d+,\t)?Loss: \S+,\tAccuracy: \S+"
)


@dataclass(frozen=True)
class Runs:
    """One program's runs."""

    program: Program
    alone: Trained
    three: Trained
    resized: Trained

    @property
    def all(self) -> tuple[Trained, ...]:
        return self.alone, self.three, self.resized


@pytest.fixture(scope="module")
def train_all(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Program], Runs]:
    """The runs of a program, which are made once."""

    @functools.cache
    def runs_of(program: Program) -> Runs:
        folder = tmp_path_factory.mktemp(program.name)
        jobs = alone, three, resized = [job_in(folder / name, program) for name in ("1", "3", "resized")]
        with ThreadPoolExecutor(2) as pool:  # most of a short job's time is imports
            runs = (
                pool.submit(train_with, alone, program, 1),
                pool.submit(train_with, three, program, 3),
                pool.submit(train_resized, resized, program),
            )
            try:
                return Runs(program, *(run.result() for run in runs))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for job in jobs:
                    job.kill()

    return runs_of


@pytest.fixture
def runs(request: pytest.FixtureRequest, train_all: Callable[[Program], Runs]) -> Runs:
    return train_all(request.param)


def of(*programs: Program) -> pytest.MarkDecorator:
    """For each of these programs; all of them but one only in the full run."""
    runs = [program if program is DIGITS else full(program) for program in programs]
    return pytest.mark.parametrize("runs", runs, ids=lambda program: program.name, indirect=True)


LOGGED = (IMAGES, DIGITS, STEPS)
"""Programs with a logger of the first generation."""


# The same model.


@of(*ELASTIC)
def test_one_worker_three_and_a_changing_number_train_the_same_bits(runs: Runs) -> None:
    assert runs.alone.sizes == [1]
    assert max(runs.three.sizes) == 3
    assert [size for size in runs.resized.sizes if size in (2, 3, 1)][-3:] == [2, 3, 1]
    expected = runs.alone.digests()
    assert expected
    assert runs.three.digests() == expected
    assert runs.resized.digests() == expected


@of(*ELASTIC)
def test_plain_python_trains_the_same_bits(runs: Runs, tmp_path: Path) -> None:
    assert model_digests(train_plainly(tmp_path, runs.program)) == runs.alone.digests()


@of(GLOBALS)
def test_a_program_caps_its_own_workers(runs: Runs) -> None:
    assert runs.three.sizes[-2:] == [2, 3]


@of(*ELASTIC)
def test_a_logger_is_told_the_same_of_every_mini_batch_once(runs: Runs) -> None:
    program = runs.program
    for run in runs.all:
        rows = run.rows()
        assert len(rows) == program.mini_batches * program.epochs
        assert [row[0] for row in rows] == [f"Global steps: {n}" for n in range(1, len(rows) + 1)]
        assert rows == runs.alone.rows()
        assert run.rows("Test") == runs.alone.rows("Test")


@of(*LOGGED)
def test_validation_comes_when_it_is_asked_for(runs: Runs) -> None:
    assert len(runs.alone.rows("Test")) == runs.program.tests


# Files.


@of(*ELASTIC)
def test_the_folder_of_models_has_what_was_asked_for(runs: Runs) -> None:
    names = {f"model_epoch_{n}" for n in (*runs.program.epochs_kept, "final")}
    for run in runs.all:
        found = {path.name for path in run.models.glob("*.pth")}
        assert found == {f"{name}{suffix}.pth" for name in names for suffix in ("", "_optimizer_state")}


@of(*(program for program in ELASTIC if program.epochs in program.epochs_kept))
def test_a_checkpoint_of_the_last_epoch_is_the_final_model(runs: Runs) -> None:
    for run in runs.all:
        assert model_digests(run.models, str(runs.program.epochs)) == run.digests()
        first = str(runs.program.epochs_kept[0])
        assert model_digests(run.models, first) == model_digests(runs.alone.models, first) != run.digests()


@of(IMAGES)
def test_frozen_layers_are_in_the_model_and_not_in_the_optimizer(runs: Runs) -> None:
    digests = runs.alone.digests()
    assert {"model/conv1.weight", "model/bn1.running_mean", "model/fc.bias"} <= set(digests)
    assert sum(name.startswith("optimizer/") for name in digests) == len(("weight", "bias", "groups"))


@of(IMAGES, STEPS, GLOBALS)
def test_only_the_driver_has_a_log_of_lines(runs: Runs) -> None:
    for run in runs.all:
        lines = run.log.splitlines()
        assert lines[0].split("] ")[1].startswith("Train,")
        assert [line for line in lines if not LINE.fullmatch(line)] == []
        assert [path for folder in run.executor_logs.values() for path in folder.glob("stdout")] == []


@of(*ELASTIC)
def test_every_worker_has_a_log_folder_of_its_own(runs: Runs) -> None:
    assert list(runs.alone.executor_logs) == [1]
    for run in (runs.three, runs.resized):
        assert {1, 2, 3} <= set(run.executor_logs)


@of(*ELASTIC)
def test_notebooks_read_the_log(runs: Runs) -> None:
    text = runs.resized.log.replace(":", ",")
    columns = ["time", "steps", "iteration", "loss", "accuracy"]
    frame = pd.read_csv(io.StringIO(text), usecols=[4, 6, 8, 10, 12], names=columns)
    frame["time"] = pd.to_datetime(frame["time"], unit="ms")
    trained = frame.dropna(subset=["accuracy"])
    assert list(trained["steps"]) == list(range(1, len(runs.resized.rows()) + 1))
    assert frame["time"].is_monotonic_increasing
    assert (trained["iteration"] >= 0).all()
    assert trained["accuracy"].between(0, 1).all()


@of(*LOGGED)
def test_metrics_are_lines_of_json(runs: Runs) -> None:
    for run in runs.all:
        lines = (run.driver_logs / "evaluation-metrics.txt").read_text().splitlines()
        assert len(lines) == len(run.rows())
        for line in map(json.loads, lines):
            assert line["grouplabel"] == "test"
            assert {"training_id", "time", "rindex"} <= set(line["meta"])
            assert line["meta"]["training_id"]
            assert line["etimes"]["iteration"]["type"] == 2
            assert {name: value["type"] for name, value in line["values"].items()} == {
                "loss": 3,
                "accuracy": 3,
            }
            assert ("writer" in line["meta"]) is (runs.program is IMAGES)  # which brings emetrics of its own


@of(*LOGGED)
def test_a_logger_writes_its_summary_at_the_end(runs: Runs) -> None:
    summaries = [json.loads((run.folder / "val_dict_list.json").read_text()) for run in runs.all]
    assert [entry["steps"] for entry in summaries[0]] == list(range(1, len(runs.alone.rows()) + 1))
    assert all(type(entry["loss"]) is float for entry in summaries[0])
    assert summaries[1:] == summaries[:1] * 2


@of(SEQUENCES)
def test_second_generation_loggers_get_metrics_by_name(runs: Runs) -> None:
    for run in runs.all:
        assert (run.folder / "logged.txt").read_text() == f"{len(run.rows())}\n"
        lines = (run.driver_logs / "evaluation-metrics.txt").read_text().splitlines()
        values = [(line["grouplabel"], line["values"]) for line in map(json.loads, lines)]
        assert sum(group == "train" for group, _ in values) == len(run.rows())
        assert sum(group == "test" for group, _ in values) == SEQUENCES.epochs // 3
        assert all({"loss", "second_guess"} <= set(metrics) for _, metrics in values)
        assert all(value["type"] == 3 for _, metrics in values for value in metrics.values())


@of(SEQUENCES)
def test_worker_loggers_are_told_what_their_worker_did(runs: Runs) -> None:
    for run in (runs.alone, runs.three):
        logs = [(folder / "stdout").read_text() for folder in run.executor_logs.values()]
        assert all(logs)
        assert sum(len(log.splitlines()) for log in logs) == len(run.rows())


@of(*ELASTIC)
def test_scripts_run_once_and_print_once(runs: Runs) -> None:
    for run in runs.all:
        assert (run.folder / "done.txt").exists()
        for words in runs.program.printed:
            assert run.driver_printed.count(words) == 1, words
            assert run.printed.count(words) == 1, words
        for file in (run.folder / "run" / "processes").glob("[0-9]*/stdout"):
            assert not any(words in file.read_text() for words in runs.program.printed)


@of(DIGITS, STEPS)
def test_onnx_models_are_written_once(runs: Runs) -> None:
    for run in runs.all:
        (path,) = run.folder.glob(runs.program.onnx)
        onnx.checker.check_model(onnx.load(path))


@of(STEPS)
def test_every_worker_follows_a_schedule_of_the_learning_rate(runs: Runs) -> None:
    for run in runs.all:
        state = torch.load(run.models / "model_epoch_final_optimizer_state.pth", weights_only=True)
        (group,) = state["param_groups"]
        assert group["lr"] == 0.1 * 0.5 * 0.5


@of(*ELASTIC)
def test_tensorboard_reads_the_events(runs: Runs) -> None:
    for run in runs.all:
        events = EventAccumulator(str(run.driver_logs / "tb")).Reload()
        scalars = events.Tags()["scalars"]
        assert scalars
        assert any(events.Scalars(tag) for tag in scalars)


# Other numbers in, other bits out.


@pytest.mark.full
@of(SEQUENCES)
def test_another_seed_changes_every_tensor(runs: Runs, tmp_path: Path) -> None:
    seeded = train(tmp_path, SEQUENCES, 1, *SEQUENCES.arguments, "--seed", "2").digests()
    assert seeded.keys() == runs.alone.digests().keys()
    same = {name for name, value in runs.alone.digests().items() if seeded[name] == value}
    assert {name for name in same if not name.endswith("/step")} == {"optimizer/groups"}


@pytest.mark.full
@of(IMAGES)
def test_another_picture_changes_the_model(runs: Runs, tmp_path: Path) -> None:
    job = job_in(tmp_path, IMAGES)
    job.allocate(1)
    pictures = sorted((job.data / "train" / "ants").iterdir())
    shutil.copy(pictures[0], pictures[1])
    try:
        found = job.start_program(IMAGES, *IMAGES.arguments).wait().digests()
    finally:
        job.kill()
    assert found["model/fc.weight"] != runs.alone.digests()["model/fc.weight"]
    assert found["model/conv1.weight"] == runs.alone.digests()["model/conv1.weight"]  # it is frozen
