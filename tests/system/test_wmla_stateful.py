"""A script with state in every place trains the same bits as under python."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wmla_harness import WmlaJob, job_in, model_digests, train_plainly, train_resized
from wmla_programs import STATEFUL

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[WmlaJob]:
    one = job_in(tmp_path / "job", STATEFUL)
    yield one
    one.kill()


def test_executors_train_what_plain_python_trains(job: WmlaJob, tmp_path: Path) -> None:
    plain = train_plainly(tmp_path / "plain", STATEFUL)
    run = train_resized(job, STATEFUL)
    assert run.digests() == model_digests(plain.models)
    assert len(run.rows()) == STATEFUL.mini_batches * (STATEFUL.epochs + 2 + 1)
    assert run.driver_printed.count("stateful: ends with") == 1
    servers = [event for event in run.events if event["event"] == "warm_server"]
    assert servers
    for server in servers:
        assert server["refused"] is None
        assert {"edt_hvd", "numpy", "torch"} <= set(server["imports"])
