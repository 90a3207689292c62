"""Appending to files that can be written, and to those that cannot."""

from pathlib import Path

from edt_launch.core.appender import Appender


def test_a_full_disk_is_told_once_and_costs_what_was_written(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "log"
    path.symlink_to("/dev/full")
    appender = Appender(path, told.append)
    for _ in range(3):
        appender.write("lost\n")
        appender.flush()
    appender.close()
    assert told == [f"{path} cannot be written: No space left on device; the job goes on without it"]
