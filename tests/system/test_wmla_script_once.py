"""Scripts run once, in the driver, and train the bits that python trains, whatever they do before `train`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from wmla_harness import Trained, WmlaJob, job_in, model_digests, train_plainly, train_resized
from wmla_programs import ONCE, STATEFUL, Program

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def job(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[WmlaJob]:
    one = job_in(tmp_path / "job", request.param)
    yield one
    one.kill()


def of(program: Program) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("job", [program], ids=[program.name], indirect=True)


def check_servers(run: Trained) -> None:
    servers = [event for event in run.events if event["event"] == "warm_server"]
    assert servers
    for server in servers:
        assert server["refused"] is None
        assert {"edt_hvd", "numpy", "torch"} <= set(server["imports"])


@of(ONCE)
def test_what_a_script_does_before_train_happens_once(job: WmlaJob, tmp_path: Path) -> None:
    run = train_resized(job, ONCE, (1, 2))
    assert (job.data / "count").read_text() == "one\n"
    assert len([path for path in run.folder.iterdir() if path.name.isdigit()]) == 1
    assert [line.split(":")[-1] for line in (run.folder / "train.log").read_text().splitlines()] == [
        "the script begins",
        "the script ends",
    ]
    assert [line.split("=")[0] for line in run.driver_printed.splitlines()[:4]] == [
        *("DLI_WORK_DIR", "DATA_DIR", "RESULT_DIR", "LOG_DIR"),
    ]
    assert f"RESULT_DIR={run.folder}" in run.driver_printed
    assert len(run.rows()) == ONCE.mini_batches * ONCE.epochs
    check_servers(run)
    job_run = json.loads((run.folder / "run" / "job_run").read_text())
    assert job_run["run"] == 1, "the training has not used the agents that started with the driver"
    seed = json.loads((run.folder / "args.json").read_text())["seed"]
    plain = train_plainly(tmp_path / "plain", ONCE, "--seed", str(seed))
    assert run.digests() == model_digests(plain.models)


@of(STATEFUL)
def test_executors_train_what_plain_python_trains(job: WmlaJob, tmp_path: Path) -> None:
    plain = train_plainly(tmp_path / "plain", STATEFUL)
    run = train_resized(job, STATEFUL)
    assert run.digests() == model_digests(plain.models)
    assert len(run.rows()) == STATEFUL.mini_batches * (STATEFUL.epochs + 2 + 1)
    assert run.driver_printed.count("stateful: ends with") == 1
    check_servers(run)
