"""This machine without GPUs."""

from pathlib import Path

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, parse
from edt_launch.cluster.local import allocate_here


@pytest.mark.parametrize("devices, bound", [((), None), (("0", "1", "2"), ("0", "1"))])
def test_an_allocation_of_slots_on_this_machine(
    tmp_path: Path, devices: tuple[str, ...], bound: tuple[str, ...] | None
) -> None:
    path = tmp_path / "allocation"
    allocate_here(path, 3, 2, devices)
    assert parse(path.read_text()) == Allocation(3, (HostSlots("localhost", 2, bound),))
