from collections.abc import Iterable

from edt_launch.cluster.nvidia import Load
from edt_launch.service.database.records import HostRecord
from edt_launch.service.machines import STALE, Machines


class Meter:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def loads(self, names: Iterable[str]) -> dict[str, Load]:
        self.asked += 1
        return dict.fromkeys(names, Load(1, 2.0))


def test_only_this_machine_is_measured_and_not_again_and_again() -> None:
    meter, hosts = Meter(), [HostRecord("here", ("0",)), HostRecord("there", ("0",))]
    machines = Machines(meter, {"here"})
    assert machines.loads(hosts, lambda: 0.0).keys() == {"here"}
    assert machines.loads(hosts, lambda: STALE - 1)["here"].gpus == {"0": Load(1, 2.0)}
    assert meter.asked == 1
    machines.loads(hosts, lambda: STALE)
    assert meter.asked == 2
    assert machines.loads([HostRecord("here", ("0",), is_up=False)], lambda: STALE) == {}
