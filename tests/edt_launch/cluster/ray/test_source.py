from collections.abc import Sequence
from typing import Any

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.ray.connection import Options
from edt_launch.cluster.ray.messages import HostView, Picture
from edt_launch.cluster.ray.source import Ray
from edt_launch.cluster.usage import Usage


class Cluster:
    """A connection that shows what the test says, and remembers what was wanted."""

    def __init__(self) -> None:
        self.hosts: list[HostView] = []
        self.wanted: list[tuple[int, Sequence[tuple[str, str]]]] = []

    def picture(self) -> Picture:
        return Picture("GPU", tuple(self.hosts), "waiting for 1 more node")

    def want(self, slots: int, used: Sequence[tuple[str, str]]) -> None:
        self.wanted.append((slots, used))


def view(name: str, *devices: str, is_draining: bool = False) -> HostView:
    return HostView(name, "10.0.0.1", devices, 4, 0, is_draining)


def source(cluster: Cluster, **options: Any) -> Ray:
    return Ray(Options("auto", "p", **options), lambda _: cluster)  # type: ignore[arg-type, return-value]


def test_the_hosts_are_the_nodes_of_which_devices_are_held_and_that_stay() -> None:
    cluster = Cluster()
    cluster.hosts = [view("a", "0", "3"), view("b"), view("c", "0", is_draining=True)]
    assert source(cluster).hosts() == (HostSlots("a", 2, ("0", "3"), "ray"),)
    assert source(cluster).waiting() == "waiting for 1 more node"


def test_a_job_wants_what_it_has_and_could_have() -> None:
    cluster = Cluster()
    usage = Usage(source(cluster))
    usage.tell(frozenset(), 4)
    usage.tell(frozenset({("a", "0"), ("a", "1")}), 2)
    usage.tell(frozenset({("a", "0")}), 3)
    usage.tell(frozenset({("a", "0")}), 0)
    a0, a1 = ("a", "0"), ("a", "1")
    assert cluster.wanted == [(4, []), (4, [a0, a1]), (4, [a0]), (1, [a0])]
