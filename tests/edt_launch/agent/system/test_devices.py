"""Which GPUs a host can have."""

import pytest

from edt_launch.agent.system.devices import problem


@pytest.mark.parametrize(
    "devices, gpus", [("0", 0), ("7", 0), ("3", 4), ("0,3", 4), ("GPU-5f", 1), ("cpu9", 1)]
)
def test_what_may_be_there(devices: str, gpus: int) -> None:
    assert problem("node2", devices, gpus) is None


def test_what_is_not_there() -> None:
    assert problem("node2", "3,4,9", 4) == (
        "node2 has no GPU 4, 9, only 4 GPUs, numbers 0 to 3: correct slots= or devices= of the host in the "
        "host file, or add devices=none if jobs need no GPU"
    )
