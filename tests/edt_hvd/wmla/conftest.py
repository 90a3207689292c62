from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_hvd.wmla.training import variables
from interpreters import Interpreters

VARIABLES = (
    *("FABRIC_BACKEND", "JOB_STATE_DIR", "TRAINING_ID", "SAVED_MODEL_DIR"),
    *("EDT_WMLA_LAUNCHER", "EDT_WMLA_ROLE"),
)


@pytest.fixture(autouse=True)
def _no_other_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules of all other tests are no part of the program, whose variables are looked through."""
    monkeypatch.setattr(variables, "is_own", lambda _: False)


@pytest.fixture(scope="session")
def importing() -> Iterator[Interpreters]:
    """Processes that have imported what drivers and executors need."""
    with Interpreters("import horovod.torch, edt_hvd.wmla.executor, edt_hvd.wmla.script") as found:
        yield found


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a job, and its environment; torch's settings stay as they are for the other tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "log").mkdir()
    monkeypatch.setenv("RESULT_DIR", str(tmp_path))
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "log"))
    monkeypatch.setenv("DLI_EXECID", "wmla-7")
    monkeypatch.setenv("EDT_WMLA_DETERMINISTIC", "0")
    return tmp_path
