from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import ElasticJob, Undisturbed
from light import LIGHT
from wmla_service import Service
from worlds import postgresql

__all__ = ["job", "postgresql", "service"]


@pytest.fixture(scope="module", autouse=True)
def _light_processes(_environment: None) -> Iterator[None]:
    """The processes of jobs import less of torch, and do not ask one another a thousand times a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOROVOD_CYCLE_TIME", "5")
        patch.setenv("PYTHONPATH", LIGHT, prepend=":")
        yield


@pytest.fixture
def job(tmp_path: Path) -> Iterator[ElasticJob]:
    one = ElasticJob(tmp_path / "a job's folder")
    yield one
    one.kill()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Undisturbed:
    own = tmp_path_factory.getbasetemp()
    return Undisturbed((own if worker_id == "master" else own.parent) / "undisturbed")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "home", tmp_path / "data of all users")
    one.home.mkdir()
    one.log.touch()
    yield one
    print(one.log.read_text()[-5000:])
    one.close()
