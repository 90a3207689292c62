"""The paths of a job."""

import pytest

from edt_launch.core.errors import UsageError
from edt_launch.core.run_dir import RunDir


def test_spells_every_path(tmp_path):
    paths = RunDir(tmp_path / 'it\'s a "folder"')
    with paths.opened():
        assert {p.name for p in paths.root.iterdir()} == {"log", "run"}
    found = (paths.events, paths.rank_log("3"), paths.own_log, paths.allocation, paths.checkpoint)
    relative = [str(path.relative_to(paths.root)) for path in found]
    assert relative == [
        "events.jsonl",
        "log/rank.3.log",
        "log/edt-launch.log",
        "run/allocation",
        "checkpoint",
    ]


def test_only_one_launcher_at_a_time(tmp_path):
    with (
        RunDir(tmp_path).opened(),
        pytest.raises(UsageError, match="another edt-launch"),
        RunDir(tmp_path).opened(),
    ):
        pass
    with RunDir(tmp_path).opened():
        pass
