from dataclasses import dataclass

import pytest

from edt_launch.cluster.nvidia import Nvidia
from edt_launch.cluster.sources import DevicesError, HostDevices


@dataclass
class FakeDriver:
    """A driver that knows so many GPUs, or does not answer."""

    found: tuple[str, ...] | None

    def gpus(self) -> tuple[str, ...]:
        if self.found is None:
            raise DevicesError("no answer")
        return self.found


def test_all_gpus_of_this_machine() -> None:
    assert Nvidia(FakeDriver(("0", "1"))).hosts() == (HostDevices("localhost", ("0", "1")),)


def test_only_those_that_are_visible() -> None:
    assert Nvidia(FakeDriver(("0", "1", "2")), "2,0").hosts()[0].devices == ("2", "0")


def test_one_that_has_failed_is_missed() -> None:
    driver = FakeDriver(("0", "1"))
    source = Nvidia(driver)
    driver.found = ("0",)
    assert source.hosts()[0].devices == ("0",)
    driver.found = None
    with pytest.raises(DevicesError):
        source.hosts()
