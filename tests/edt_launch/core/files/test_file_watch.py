"""Being woken when a file changes."""

import select
from pathlib import Path

from edt_launch.core.files.file_watch import Watch


def wait(watch: Watch) -> None:
    """Until it is woken; pytest's own timeout is the limit."""
    select.select([watch], [], [])
    watch.clear()


def nudge_until_woken(watch: Watch, file: Path) -> None:
    """The watching thread may need a moment to begin."""
    while not select.select([watch], [], [], 0.05)[0]:
        file.write_text("nudge")
    watch.clear()


def test_it_wakes_when_the_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "allocation"
    watch = Watch(file)
    nudge_until_woken(watch, tmp_path / "other")
    for number in range(5):
        beside = tmp_path / "allocation.new"
        beside.write_text(str(number))
        beside.replace(file)
        wait(watch)
    watch.close()
