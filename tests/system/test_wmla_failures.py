"""WMLA programs that lose a worker, that fail, or that cannot run here."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from wmla_harness import Trained, WmlaJob, job_in, train
from wmla_programs import DIGITS, GLOBALS, MODELS, SHIPPED


@pytest.fixture
def job(tmp_path: Path) -> Iterator[WmlaJob]:
    one = job_in(tmp_path, DIGITS)
    yield one
    one.kill()


def last_lines(job: WmlaJob, count: int = 40) -> str:
    return "\n".join(job.stderr.rstrip().splitlines()[-count:])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The training with one worker."""
    return train(tmp_path_factory.mktemp("alone"), DIGITS, 1)


@pytest.mark.full
def test_killed_workers_change_nothing_in_the_model_and_its_log(job: WmlaJob, alone: Trained) -> None:
    job.slow(DIGITS)
    job.allocate(3)
    job.start_program(DIGITS, *DIGITS.arguments)
    job.until_size(3)
    for rank, size in ((0, 2), (1, 1)):  # the coordinator, whose word the driver has; another one
        done = len(job.logged())
        job.until(lambda done=done: len(job.logged()) > done + DIGITS.interval)
        job.worker(rank).send_signal(signal.SIGKILL)
        job.until_size(size)
    trained = job.wait()
    assert len(job.events("failed")) == 2
    assert trained.digests() == alone.digests()
    assert trained.rows() == alone.rows()
    assert trained.rows("Test") == alone.rows("Test")


@pytest.mark.full
def test_no_row_is_lost_with_all_workers_at_once(job: WmlaJob, alone: Trained) -> None:
    job.slow(DIGITS)
    job.allocate(2)
    job.start_program(DIGITS, *DIGITS.arguments)
    job.until_size(2)
    job.until(lambda: len(job.logged()) > 5 * DIGITS.interval)
    workers = [job.worker(rank) for rank in range(2)]
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
    job.until(lambda: job.events("restarting"))
    trained = job.wait()
    assert trained.digests() == alone.digests()
    assert trained.rows() == alone.rows()
    assert trained.rows("Test") == alone.rows("Test")


@pytest.mark.full
def test_a_driver_that_fails_ends_the_job_with_what_it_said(job: WmlaJob) -> None:
    job.allocate(2)
    job.start_program(DIGITS, *DIGITS.arguments, "--numWorker", "2")  # its command line is strict
    assert job.end() == 1
    assert "unrecognized arguments: --numWorker 2" in last_lines(job)
    assert "driver" in last_lines(job)
    assert job.survivors() == []


@pytest.mark.full
def test_a_dataset_that_fails_on_the_workers_is_told(job: WmlaJob) -> None:
    script = GLOBALS.bring(job.folder / "brought")
    broken = "        if index == 100:\n            raise OSError('sample 100 is broken')\n"
    place = "        storage.wait()\n"
    script.write_text(script.read_text().replace(place, broken + place))
    job.allocate(1)
    job.run(script, environment={"NUM_EPOCHS": "2"}, options=("--max-restarts", "0"))
    assert job.end() == 1
    assert "sample 100 is broken" in last_lines(job)
    assert not (job.results / "done.txt").exists()
    assert job.survivors() == []


def test_executors_that_end_well_before_their_training_are_no_success(job: WmlaJob) -> None:
    script = DIGITS.bring(job.folder / "brought")
    ends = "import os\nif os.environ.get('EDT_WMLA_ROLE') == 'executor':\n    os._exit(0)\n"
    script.write_text(ends + script.read_text())
    job.allocate(2)
    job.run(script, *DIGITS.arguments, environment=dict(DIGITS.environment))
    assert job.end() == 1
    assert "on localhost exited with code 0 before the training was done" in last_lines(job)
    assert job.survivors() == []


@pytest.mark.full
def test_a_paused_job_goes_on_where_it_was(job: WmlaJob, alone: Trained) -> None:
    job.slow(DIGITS)
    job.allocate(2)
    job.start_program(DIGITS, *DIGITS.arguments)
    job.until(lambda: len(job.logged()) > 20)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert job.end() == 5
    assert job.survivors() == []
    job.hurry()
    job.allocate(1)
    job.start_program(DIGITS, *DIGITS.arguments)
    trained = job.wait()
    assert trained.digests() == alone.digests()
    assert [row[1:] for row in trained.rows()] == [
        row[1:] for row in alone.rows()
    ]  # its own count begins anew


@pytest.mark.full
@pytest.mark.parametrize("installed", [False, True])
def test_keras_programs_are_refused(job: WmlaJob, installed: bool) -> None:
    folder = job.folder / "brought"
    script = bring_keras(folder, installed)
    job.allocate(1)
    job.run(script, environment={})
    assert job.end() == 1
    told = last_lines(job)
    assert "Keras" in told
    assert "PyTorch" in told
    assert not (job.results / "done.txt").exists()


TENSORFLOW = """
class Layer:
    def __init__(self, *arguments, **options): ...
class Sequential(Layer): ...
class ImageDataGenerator: ...
class layers:
    Flatten = Dense = Layer
"""


def bring_keras(folder: Path, installed: bool) -> Path:
    """The program, and if `installed` as much of a TensorFlow as it needs to come to its FabricModel."""
    folder.mkdir(parents=True)
    for path in ((MODELS / "keras_digits").glob("*.py"), SHIPPED.glob("e*.py")):
        for file in path:
            (folder / file.name).write_text(file.read_text())
    if installed:
        package = folder / "tensorflow"
        for name, text in {
            "": "from . import keras\n",
            "keras": TENSORFLOW + "from . import preprocessing\n",
            "keras/preprocessing": "",
            "keras/preprocessing/image": "class ImageDataGenerator: ...\n",
        }.items():
            (package / name).mkdir(parents=True, exist_ok=True)
            (package / name / "__init__.py").write_text(text)
    return folder / "main.py"
