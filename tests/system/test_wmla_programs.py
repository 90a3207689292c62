"""Programs written for WMLA run as they are, and train the same model whatever the number of workers."""

import functools
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tiers import full
from wmla_harness import Plain, Trained, job_in, log_rows, model_digests, train_plainly, train_resized
from wmla_programs import DIGITS, ELASTIC, IMAGES, STEPS, Program

pytestmark = pytest.mark.timeout(900)

LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] (Train|Test),\tTimestamp: \d+,\t"
    r"(Global steps: \d+,\tIteration: \d+,\t)?Loss: \S+,\tAccuracy: \S+"
)


@dataclass(frozen=True)
class Runs:
    """One program's runs: under plain Python, and with two workers, then three, then one."""

    program: Program
    plain: Plain
    resized: Trained


@pytest.fixture(scope="module")
def train_both(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Program], Runs]:
    """The runs of a program, which are made once."""

    @functools.cache
    def runs_of(program: Program) -> Runs:
        folder = tmp_path_factory.mktemp(program.name)
        job = job_in(folder / "resized", program)
        try:
            return Runs(program, train_plainly(folder / "plain", program), train_resized(job, program))
        finally:
            job.kill()

    return runs_of


@pytest.fixture
def runs(request: pytest.FixtureRequest, train_both: Callable[[Program], Runs]) -> Runs:
    return train_both(request.param)


def of(*programs: Program) -> pytest.MarkDecorator:
    """For each of these programs; all of them but one only in the full run."""
    runs = [program if program is DIGITS else full(program) for program in programs]
    return pytest.mark.parametrize("runs", runs, ids=lambda program: program.name, indirect=True)


# The same model.


@of(*ELASTIC)
def test_a_changing_number_of_workers_trains_the_same_bits_as_plain_python(runs: Runs) -> None:
    assert [size for size in runs.resized.sizes if size in (2, 3, 1)][-3:] == [2, 3, 1]
    expected = model_digests(runs.plain.models)
    assert expected
    assert runs.resized.digests() == expected
    names = {f"model_epoch_{n}" for n in (*runs.program.epochs_kept, "final")}
    for folder in (runs.plain.models, runs.resized.models):
        found = {path.name for path in folder.glob("*.pth")}
        assert found == {f"{name}{suffix}.pth" for name in names for suffix in ("", "_optimizer_state")}
    for epoch in map(str, runs.program.epochs_kept[:1]):
        kept = model_digests(runs.resized.models, epoch)
        assert kept == model_digests(runs.plain.models, epoch) != expected
    if runs.program.epochs in runs.program.epochs_kept:
        assert model_digests(runs.resized.models, str(runs.program.epochs)) == expected


@of(*ELASTIC)
def test_a_logger_is_told_the_same_of_every_mini_batch_once(runs: Runs) -> None:
    program, rows = runs.program, runs.resized.rows()
    assert len(rows) == program.mini_batches * program.epochs
    assert [row[0] for row in rows] == [f"Global steps: {n}" for n in range(1, len(rows) + 1)]
    for kind in ("Train", "Test"):
        assert runs.resized.rows(kind) == log_rows(runs.plain.log, kind)
    assert len(runs.resized.rows("Test")) == program.tests


@of(STEPS)
def test_onnx_models_are_written_once(runs: Runs) -> None:
    import onnx

    (path,) = runs.resized.folder.glob(runs.program.onnx)
    onnx.checker.check_model(onnx.load(path))


# Logs.


@of(*ELASTIC)
def test_scripts_run_once_and_print_once(runs: Runs) -> None:
    run = runs.resized
    assert (run.folder / "done.txt").exists()
    for words in runs.program.printed:
        assert run.driver_printed.count(words) == 1, words
        assert run.printed.count(words) == 1, words
    for file in (run.folder / "run" / "processes").glob("[0-9]*/stdout"):
        assert not any(words in file.read_text() for words in runs.program.printed)


@of(*ELASTIC)
def test_the_driver_has_the_log_and_every_worker_a_folder_of_its_own(runs: Runs) -> None:
    run = runs.resized
    assert {1, 2, 3} <= set(run.executor_logs)
    if runs.program in (IMAGES, STEPS):  # whose workers log nothing
        assert [line for line in run.log.splitlines() if not LINE.fullmatch(line)] == []
        assert [path for folder in run.executor_logs.values() for path in folder.glob("stdout")] == []


@pytest.mark.full
@of(*ELASTIC)
def test_notebooks_and_tensorboard_read_the_log(runs: Runs) -> None:
    import pandas as pd  # takes a second of each process that collects
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    text = runs.resized.log.replace(":", ",")
    columns = ["time", "steps", "iteration", "loss", "accuracy"]
    frame = pd.read_csv(io.StringIO(text), usecols=[4, 6, 8, 10, 12], names=columns)
    frame["time"] = pd.to_datetime(frame["time"], unit="ms")
    trained = frame.dropna(subset=["accuracy"])
    assert list(trained["steps"]) == list(range(1, len(runs.resized.rows()) + 1))
    assert frame["time"].is_monotonic_increasing
    assert trained["accuracy"].between(0, 1).all()
    events = EventAccumulator(str(runs.resized.driver_logs / "tb")).Reload()
    assert {"train/loss", "train/accuracy", "train/workers", "test/loss"} <= set(events.Tags()["scalars"])
    assert {event.value for event in events.Scalars("train/workers")} >= {1.0, 2.0, 3.0}


@of(*ELASTIC)
def test_metrics_are_lines_of_json_and_a_summary(runs: Runs) -> None:
    run = runs.resized
    lines = (run.driver_logs / "evaluation-metrics.txt").read_text().splitlines()
    assert len(lines) == len(run.rows())
    for line in map(json.loads, lines):
        assert (line["grouplabel"], line["etimes"]["iteration"]["type"]) == ("test", 2)
        assert {name: value["type"] for name, value in line["values"].items()} == {"loss": 3, "accuracy": 3}
        assert ("writer" in line["meta"]) is (runs.program is IMAGES)  # which brings emetrics of its own
    summary = json.loads((run.folder / "val_dict_list.json").read_text())
    assert [entry["steps"] for entry in summary] == list(range(1, len(run.rows()) + 1))
    assert all(type(entry["loss"]) is float for entry in summary)
