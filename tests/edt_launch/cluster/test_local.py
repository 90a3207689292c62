"""This machine without GPUs."""

from pathlib import Path

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, parse
from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.local import Cores, Slots, allocate_here


def test_slots_are_no_gpus() -> None:
    assert Slots(2).hosts() == (HostSlots("localhost", 2, ("cpu0", "cpu1")),)


def test_cores_are_slots() -> None:
    source = Cores.detect(HostOptions())
    assert source.hosts()[0].slots == source.count >= 1


@pytest.mark.parametrize("devices, bound", [((), None), (("0", "1", "2"), ("0", "1"))])
def test_an_allocation_of_slots_on_this_machine(
    tmp_path: Path, devices: tuple[str, ...], bound: tuple[str, ...] | None
) -> None:
    path = tmp_path / "allocation"
    allocate_here(path, 3, 2, devices)
    assert parse(path.read_text()) == Allocation(3, (HostSlots("localhost", 2, bound),))
