"""What random faults are made of, without a job."""

from pathlib import Path

import pytest
import strikes
from attacked import journals


def test_a_cut_file_has_a_part_of_what_it_had(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("0123456789")
    assert strikes.cut(file)
    assert "0123456789".startswith(file.read_text())
    assert 0 < len(file.read_text()) < 10
    assert not strikes.cut(tmp_path / "none")


def test_where_there_is_nothing_to_strike_at_something_else_happens() -> None:
    found = {"kill agent": lambda: False, "cut events": lambda: False, "stop worker": lambda: True}
    assert strikes.strike(found, "kill agent") == "stop worker"
    assert strikes.strike({"kill agent": lambda: False}, "kill agent") is None


@pytest.mark.parametrize("begin, owners", [(1.5, 2), (2.5, 0)])
def test_two_owners_of_a_device_are_found_whatever_they_write_into(
    tmp_path: Path, begin: float, owners: int
) -> None:
    for folder, pid, first in (("a", 1, 1.0), ("b", 2, begin)):
        (tmp_path / folder).mkdir()
        rows = (f'{{"device": "0", "time": {first + after}}}\n' for after in (0.0, 1.0))
        (tmp_path / folder / f"samples.{pid}.jsonl").write_text("".join(rows))
    overlaps = journals.overlaps(tmp_path / "a", tmp_path / "b")
    assert len([use for pair in overlaps for use in pair]) == owners
