"""Appending to files that can be written, and to those that cannot."""

from pathlib import Path

from edt_launch.core.appender import Appender


def test_text_is_appended_when_it_is_flushed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    appender = Appender(path, print)
    appender.write("one\n")
    appender.write("zwei ü \udcff\n")
    assert path.read_text() == "before\n"
    appender.flush()
    assert path.read_text() == "before\none\nzwei ü ?\n"
    appender.write("three\n")
    appender.close()
    assert path.read_text().endswith("three\n")


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
