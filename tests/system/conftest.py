from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import ElasticJob
from wmla_service import Service
from worlds import postgresql

__all__ = ["job", "postgresql", "service"]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[ElasticJob]:
    one = ElasticJob(tmp_path / "a job's folder")
    yield one
    one.kill()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "home", tmp_path / "data of all users")
    one.home.mkdir()
    one.log.touch()
    yield one
    print(one.log.read_text()[-5000:])
    one.close()
