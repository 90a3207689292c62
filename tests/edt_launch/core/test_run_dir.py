"""The paths of a job."""

import pytest

from edt_launch.core.errors import UsageError
from edt_launch.core.run_dir import RunDir


def test_only_one_launcher_at_a_time(tmp_path):
    with (
        RunDir(tmp_path).opened(),
        pytest.raises(UsageError, match="another edt-launch"),
        RunDir(tmp_path).opened(),
    ):
        pass
    with RunDir(tmp_path).opened():
        pass
