"""A script with state in every place trains the same bits as under python, since executors run it, too."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wmla_harness import Trained, WmlaJob, job_in, model_digests, train_plainly, train_resized, train_with
from wmla_programs import STATEFUL

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, ...]:
    """With one worker, with three, with a changing number, and paused in the second training."""
    folder = tmp_path_factory.mktemp(STATEFUL.name)
    jobs = alone, three, resized, paused = [
        job_in(folder / name, STATEFUL) for name in ("1", "3", "resized", "paused")
    ]
    with ThreadPoolExecutor(2) as pool:
        found = (
            pool.submit(train_with, alone, STATEFUL, 1),
            pool.submit(train_with, three, STATEFUL, 3),
            pool.submit(train_resized, resized, STATEFUL),
            pool.submit(train_paused, paused),
        )
        try:
            return tuple(each.result() for each in found)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for job in jobs:
                job.kill()


def train_paused(job: WmlaJob) -> Trained:
    job.slow(STATEFUL)
    job.allocate(2)
    job.start_program(STATEFUL, *STATEFUL.arguments)
    job.until(lambda: len(job.logged()) > STATEFUL.mini_batches * STATEFUL.epochs)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert job.end() == 5
    job.hurry()
    job.allocate(3)
    job.start_program(STATEFUL, *STATEFUL.arguments)
    return job.wait()


def test_executors_train_what_plain_python_trains(runs: tuple[Trained, ...], tmp_path: Path) -> None:
    expected = model_digests(train_plainly(tmp_path, STATEFUL))
    assert expected
    assert [run.digests() for run in runs] == [expected] * len(runs)


def test_the_numbers_of_executors_were_what_they_should_be(runs: tuple[Trained, ...]) -> None:
    alone, three, resized, _ = runs
    assert set(alone.sizes) == {1}
    assert max(three.sizes) == 3
    first = resized.sizes[: resized.sizes.index(1) + 1]
    assert [size for size in first if size in (2, 3, 1)][-3:] == [2, 3, 1]


def test_unseeded_generators_draw_the_same_in_every_process(runs: tuple[Trained, ...]) -> None:
    for run, drivers in zip(runs, (1, 1, 1, 2), strict=True):
        drawn = [line for line in run.driver_printed.splitlines() if "drawn" in line]
        assert len(drawn) == drivers
        assert len(set(drawn)) == 1
        processes = run.folder / "run" / "processes"
        shown = [
            line
            for file in processes.glob("[0-9]*/stdout")
            for line in file.read_text().splitlines()
            if "drawn" in line
        ]
        assert len(shown) >= 2
        assert set(shown) == set(drawn)
        assert run.driver_printed.count("stateful: ends with") == 1


def test_the_logger_has_every_mini_batch_of_all_trainings_once(runs: tuple[Trained, ...]) -> None:
    for run in runs[:-1]:
        assert len(run.rows()) == STATEFUL.mini_batches * (STATEFUL.epochs + 2 + 1)
        assert run.rows() == runs[0].rows()


def test_the_warm_server_imports_the_libraries_of_the_script(runs: tuple[Trained, ...]) -> None:
    for run in runs:
        servers = [event for event in run.events if event["event"] == "warm_server"]
        assert servers
        for server in servers:
            assert server["refused"] is None
            assert {"edt_hvd", "numpy", "torch"} <= set(server["imports"])
