from collections.abc import Sequence
from typing import Any

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.ray.connection import Options
from edt_launch.cluster.ray.messages import HostView, Picture
from edt_launch.cluster.ray.source import Ray, RayOptions
from edt_launch.cluster.sources import choose, groups, transport_of
from edt_launch.cluster.usage import Usage
from edt_launch.core.errors import UsageError


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


def test_a_pool_wants_what_is_idle_too_if_that_is_not_enough() -> None:
    cluster = Cluster()
    cluster.hosts = [view("a", "0", "1")]
    pool = source(cluster, is_kept=True)
    usage = Usage(pool)
    usage.tell(frozenset(), 0)
    pool.hosts()
    usage.tell(frozenset(), 2)  # a job needs four at least
    assert cluster.wanted == [(4, [])]


def test_options_that_need_a_cluster_are_refused_without() -> None:
    with pytest.raises(UsageError, match="--slots-at-most is for --ray"):
        choose(HostOptions({}, (RayOptions(slots_at_most=3),)))
    assert RayOptions in groups()
    assert transport_of("ray") == "ray"
