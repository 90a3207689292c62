from pathlib import Path

import pytest

from edt_launch.service.locking import lock


def test_one_has_it_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock(path):
        with pytest.raises(BlockingIOError):
            lock(path)
        assert path.exists()
    lock(path).close()
