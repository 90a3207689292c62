"""Following hosts that come and go."""

import time

from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.follower import Accepted, Limits, Rejected
from edt_launch.cluster.hosts import without_devices
from edt_launch.cluster.source_follower import SourceFollower
from simulated_hosts import SimulatedHosts


class Following:
    """A follower of a simulated source."""

    def __init__(self, min_np: int = 1, max_np: int = 4) -> None:
        self.source = SimulatedHosts()
        self.follower = SourceFollower(
            self.source,
            Limits(min_np, max_np),
            lambda host: f"unknown host {host!r}" if host == "nowhere" else None,
            interval=0.0,
        )

    def next(self, *found: HostSlots, trouble: str = "") -> Accepted | Rejected | None:
        """What comes of other hosts, or of trouble."""
        self.source.found, self.source.trouble = found, trouble
        for _ in range(2):  # an answer that was under way may be an older one
            with self.follower._lock:
                self.follower._news = None
            while self.follower._news is None:
                time.sleep(0.001)
        return self.follower.poll(0.0)


def of(accepted: Accepted | Rejected | None) -> Allocation:
    assert isinstance(accepted, Accepted)
    return accepted.allocation


A, B = HostSlots("a", 1), HostSlots("b", 1)


def test_each_change_is_followed_once() -> None:
    following = Following()
    assert of(following.next(A)) == Allocation(1, (A,))
    assert following.next(A) is None
    assert of(following.next(A, B)) == Allocation(2, (A, B))
    assert following.next(B, A) is None  # the order means nothing
    following.follower.close()


def test_slots_that_are_no_devices_bind_nobody() -> None:
    following = Following()
    assert of(following.next(without_devices("a", 2))) == Allocation(1, (HostSlots("a", 2),))
    following.follower.close()


def test_what_is_wrong_changes_nothing_and_is_reported_once() -> None:
    following = Following(min_np=2, max_np=3)
    first = of(following.next(HostSlots("a", 2)))
    wrong: list[tuple[tuple[HostSlots, ...], str, str]] = [
        ((), "half a file", "half a file"),
        ((A,), "", "the simulated cluster shows 1 slots, fewer than --min-np 2"),
        ((HostSlots("nowhere", 2),), "", "unknown"),
    ]
    for found, trouble, words in wrong:
        verdict = following.next(*found, trouble=trouble)
        assert isinstance(verdict, Rejected)
        assert words in verdict.reason
        assert following.next(*found, trouble=trouble) is None
        assert following.follower.allocation == first
        assert words in following.follower.rejection
    # no more than the job may have
    assert of(following.next(HostSlots("a", 9))) == Allocation(2, (HostSlots("a", 3),))
    assert isinstance(following.next(trouble="half a file"), Rejected)
    following.follower.close()
