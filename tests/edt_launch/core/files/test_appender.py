"""Appending to files that can be written, and to those that cannot."""

from pathlib import Path

from edt_launch.core.files.appender import Appender


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


def test_a_file_with_a_limit_has_the_beginning_and_the_end(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "log"
    path.write_text("before\n")
    appender = Appender(path, told.append, limit=40)
    for line in ("one\n", "two two two\n", "three three three\n", "four\n", "five\n", "half"):
        appender.write(line)
        appender.flush()
    reason = "the limit of 40 bytes (--max-log-size) is reached"
    full = f"before\none\nedt-launch: {reason}; the end of the output follows once the job has ended\n"
    assert path.read_text() == full
    appender.close()
    assert path.read_text() == f"{full}edt-launch: 30 bytes are left out here\nfour\nfive\nhalf"
    assert told == [f"{path}: {reason}; only the end of the rest will be kept"]
