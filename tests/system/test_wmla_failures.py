"""WMLA programs that lose workers, are paused, or fail."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from wmla_harness import Plain, WmlaJob, job_in, log_rows, model_digests, train_plainly
from wmla_programs import DIGITS

pytestmark = pytest.mark.full


@pytest.fixture
def job(tmp_path: Path) -> Iterator[WmlaJob]:
    one = job_in(tmp_path, DIGITS)
    yield one
    one.kill()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return train_plainly(tmp_path_factory.mktemp("plain"), DIGITS)


def until_more_rows(job: WmlaJob) -> None:
    done = len(job.logged())
    job.until(lambda: len(job.logged()) > done + DIGITS.interval)


def test_a_job_that_loses_workers_and_is_paused_trains_the_same_model(job: WmlaJob, plain: Plain) -> None:
    job.slow(DIGITS)
    job.allocate(3)
    job.start_program(DIGITS, *DIGITS.arguments)
    job.until_size(3)
    for rank, size in ((0, 2), (1, 1)):  # the coordinator, whose word the driver has; another one
        until_more_rows(job)
        job.worker(rank).send_signal(signal.SIGKILL)
        job.until_size(size)
    until_more_rows(job)
    assert len(job.events("failed")) == 2
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    assert job.end() == 5
    assert job.survivors() == []
    job.hurry()
    job.allocate(1)
    job.start_program(DIGITS, *DIGITS.arguments)
    trained = job.finish()
    assert trained.digests() == model_digests(plain.models)
    # The logger's own count begins anew.
    assert [row[1:] for row in trained.rows()] == [row[1:] for row in log_rows(plain.log)]


def test_no_row_is_lost_with_all_workers_at_once(job: WmlaJob, plain: Plain) -> None:
    job.slow(DIGITS)
    job.allocate(2)
    job.start_program(DIGITS, *DIGITS.arguments)
    job.until_size(2)
    job.until(lambda: len(job.logged()) > 5 * DIGITS.interval)
    for worker in [job.worker(rank) for rank in range(2)]:
        worker.send_signal(signal.SIGKILL)
    job.until(lambda: job.events("restarting"))
    trained = job.finish()
    assert trained.digests() == model_digests(plain.models)
    for kind in ("Train", "Test"):
        assert trained.rows(kind) == log_rows(plain.log, kind)
