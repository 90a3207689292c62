from dataclasses import dataclass

import pytest

from edt_launch.cluster.nvidia import Nvidia, visible
from edt_launch.core.errors import SourceError


@dataclass
class FakeDriver:
    """A driver that knows so many GPUs, or does not answer."""

    found: tuple[str, ...] | None

    def gpus(self) -> tuple[str, ...]:
        if self.found is None:
            raise SourceError("no answer")
        return self.found


def test_one_that_has_failed_is_missed() -> None:
    driver = FakeDriver(("0", "1"))
    source = Nvidia(driver)
    driver.found = ("0",)
    assert source.hosts()[0].devices == ("0",)
    driver.found = None
    with pytest.raises(SourceError):
        source.hosts()


@pytest.mark.parametrize(
    "variable, expected",
    [
        (None, ("0", "1", "2")),
        ("", ()),
        ("2,0", ("2", "0")),
        ("0,7,1", ("0",)),
        ("GPU-$(x)", ()),
    ],
)
def test_the_variable_restricts_the_gpus(variable: str | None, expected: tuple[str, ...]) -> None:
    assert visible(["0", "1", "2"], variable) == expected
