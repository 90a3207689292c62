"""A script with state in every place trains the same bits as under python."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from wmla_harness import Plain, WmlaJob, job_in, model_digests, train_plainly, train_resized
from wmla_programs import STATEFUL

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[WmlaJob]:
    one = job_in(tmp_path / "job", STATEFUL)
    yield one
    one.kill()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return train_plainly(tmp_path_factory.mktemp("plain"), STATEFUL)


def test_executors_train_what_plain_python_trains(job: WmlaJob, plain: Plain) -> None:
    run = train_resized(job, STATEFUL)
    assert run.digests() == model_digests(plain.models)
    assert len(run.rows()) == STATEFUL.mini_batches * (STATEFUL.epochs + 2 + 1)
    assert run.driver_printed.count("stateful: ends with") == 1
    servers = [event for event in run.events if event["event"] == "warm_server"]
    assert servers
    for server in servers:
        assert server["refused"] is None
        assert {"edt_hvd", "numpy", "torch"} <= set(server["imports"])


def test_a_script_that_is_paused_in_its_second_training_goes_on(job: WmlaJob, plain: Plain) -> None:
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
    assert job.finish().digests() == model_digests(plain.models)
