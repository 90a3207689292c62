from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import ElasticJob


@pytest.fixture
def job(tmp_path: Path) -> Iterator[ElasticJob]:
    one = ElasticJob(tmp_path / "a job's folder")
    yield one
    one.kill()
