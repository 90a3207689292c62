"""Following an allocation file: what is taken over, and how often the rest is reported."""

import errno
import os
import time

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.cluster.follower import (
    Accepted,
    AllocationFollower,
    Rejected,
    SizeLimits,
    SourceFollower,
    accept,
)
from simulated_hosts import SimulatedHosts

LIMITS = SizeLimits(2, 4)


def any_host(host):
    return None


def text(generation, slots=2, host="node1"):
    return render(Allocation(generation, (HostSlots(host, slots),)))


@pytest.mark.parametrize(
    "new, reason",
    [
        (text(4)[:-1], "half written"),
        (text(4).replace("node1:2", "node1:-2"), "'-2'"),
        (text(4, 5), "5 slots are more than --max-np 4"),
        (text(4, 1), "1 slots are fewer than --min-np 2"),
        (text(3, 3), "generation 3 is not newer than 3"),
        (text(4, 2, "nowhere"), "nowhere is unknown"),
    ],
)
def test_refuses_what_is_wrong(new, reason):
    def check_host(host):
        return "nowhere is unknown" if host.host == "nowhere" else None

    verdict = accept(parse(text(3)), new, LIMITS, check_host)
    assert isinstance(verdict, Rejected)
    assert reason in verdict.reason


@pytest.fixture
def path(tmp_path):
    return tmp_path / "an 'allocation' file"


@pytest.fixture
def follower(path):
    return AllocationFollower(path, LIMITS, any_host)


def test_reports_each_rejection_once_until_a_good_one(follower, path):
    assert isinstance(follower.poll(0.0), Rejected)
    assert follower.poll(0.1) is None
    for now in range(1, 5):  # between two kinds of nonsense, again and again
        path.write_text("")
        first = follower.poll(now)
        path.write_text("nonsense\n")
        second = follower.poll(now + 0.5)
        assert (first is not None, second is not None) == (now == 1, now == 1)
    path.write_text(text(1))
    assert follower.poll(5.0) == Accepted(parse(text(1)))
    assert follower.rejection == ""
    path.unlink()
    assert isinstance(follower.poll(6.0), Rejected)
    assert follower.allocation == parse(text(1))
    assert "missing" in follower.rejection


class Following:
    """A follower of a simulated source."""

    def __init__(self, min_np: int = 1, max_np: int = 4) -> None:
        self.source = SimulatedHosts()
        self.unknown = {"nowhere"}
        self.follower = SourceFollower(
            self.source,
            SizeLimits(min_np, max_np),
            lambda host: f"unknown host {host.host!r}" if host.host in self.unknown else None,
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


def test_a_source_that_fails_in_any_way_is_asked_again() -> None:
    following = Following()
    first = of(following.next(A))
    following.source.failure = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    verdict = following.next(A, B)
    assert isinstance(verdict, Rejected)
    assert "the simulated cluster failed: UnicodeDecodeError: " in verdict.reason
    assert following.follower.allocation == first
    following.source.failure = None
    assert of(following.next(A, B)).hosts == (A, B)
    following.follower.close()


def test_hosts_without_an_address_are_left_out_until_they_have_one(caplog: pytest.LogCaptureFixture) -> None:
    following = Following(max_np=2)
    new = HostSlots("nowhere", 1)
    assert of(following.next(new, A)).hosts == (A,)
    assert of(following.next(new, A, B)).hosts == (A, B)  # it takes nobody's place
    assert [record.getMessage() for record in caplog.records] == [
        "the simulated cluster: unknown host 'nowhere'; left out until it can be used"
    ]
    following.unknown.clear()
    assert of(following.next(new, A, B)).hosts == (new, A)
    following.follower.close()


def test_what_is_wrong_changes_nothing_and_is_reported_once() -> None:
    following = Following(min_np=2, max_np=3)
    first = of(following.next(HostSlots("a", 2)))
    wrong: list[tuple[tuple[HostSlots, ...], str, str]] = [
        ((), "half a file", "half a file"),
        ((A,), "", "the simulated cluster shows 1 slots, fewer than --min-np 2"),
        ((HostSlots("nowhere", 2),), "", "0 slots, fewer than --min-np 2; unknown host 'nowhere'"),
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


def test_no_error_of_a_file_system_ends_the_following(follower, path, monkeypatch):
    path.write_text(text(1))
    assert isinstance(follower.poll(0.0), Accepted)

    def fail(*_, **__):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as broken:
        for function in ("stat", "open"):
            broken.setattr(os, function, fail)
        verdicts = [follower.poll(now) for now in (2.0, 4.0, 6.0)]
    assert isinstance(verdicts[0], Rejected)
    assert os.strerror(errno.ESTALE) in verdicts[0].reason
    assert verdicts[1:] == [None, None]
    assert follower.poll(8.0) is None  # as it was
    assert follower.rejection == ""
    path.write_text(text(2, 3))
    assert isinstance(follower.poll(10.0), Accepted)
