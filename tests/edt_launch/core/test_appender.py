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


def test_a_file_takes_whole_lines_up_to_its_limit(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "log"
    path.write_text("before\n")
    appender = Appender(path, told.append, limit=20)
    for line in ("one\n", "two two two\n", "three\n"):
        appender.write(line)
        appender.flush()
    appender.close()
    reason = "--max-log-size 20 is reached; what follows is not kept"
    assert path.read_text() == f"before\none\nedt-launch: {reason}\n"
    assert told == [f"{path}: {reason}"]
