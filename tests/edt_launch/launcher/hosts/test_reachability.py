"""When hosts are asked whether they reach each other, and which are done without."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.launcher import watchdog
from edt_launch.launcher.hosts import reachability
from edt_launch.launcher.hosts.reachability import ANSWER_TIMEOUT, DOUBT_AFTER, PROBE_INTERVAL, Probing
from edt_launch.membership.protocol import MemberPhase, Slot, Worker

HOSTS = ["a", "b", "c", "d"]


def workers(*hosts: str) -> list[Worker]:
    return [
        Worker(rank, Slot(host, rank), MemberPhase.ACTIVE, started_at=0.0, rank=rank, generation=1)
        for rank, host in enumerate(hosts)
    ]


def reached(hosts: list[str], *apart: str) -> Mapping[str, set[str]]:
    """All hosts reach each other, but not these: "ab" does not lead from a to b."""
    return {one: {other for other in hosts if one != other and one + other not in apart} for one in hosts}


def waiting(stage: str, seconds: float, *there: Worker) -> watchdog.Watch:
    watch = watchdog.tick(0.0, watchdog.Watch(), {worker.id: worker for worker in there})
    for worker in there:
        watch = watchdog.observe(seconds, watch, watchdog.Heartbeat(worker.id, 3, stage, seconds, {}))
    return watch


@pytest.mark.parametrize(
    "stage, seconds, is_due",
    [
        ("reducing", DOUBT_AFTER - 0.1, False),
        ("reducing", DOUBT_AFTER, True),
        ("forming", DOUBT_AFTER, True),
        ("computing", 60.0, False),
    ],
)
def test_hosts_are_in_doubt_when_their_workers_wait_for_others(
    stage: str, seconds: float, is_due: bool
) -> None:
    there = workers("a", "b")
    hosts = reachability.hosts_in_doubt(seconds, Probing(), waiting(stage, seconds, *there), there, False)
    assert hosts == (frozenset("ab") if is_due else frozenset())


def test_a_single_host_is_never_in_doubt() -> None:
    there = workers("a", "a")
    watch = waiting("reducing", 60.0, *there)
    assert not reachability.hosts_in_doubt(60.0, Probing(), watch, there, has_failed=True)


def test_a_probe_is_repeated_now_and_then_and_at_once_when_no_world_could_be_formed() -> None:
    there = workers("a", "b")
    watch = waiting("reducing", 60.0, *there)

    def in_doubt(now: float, probing: Probing, has_failed: bool = False) -> frozenset[str]:
        return reachability.hosts_in_doubt(now, probing, watch, there, has_failed)

    probing = reachability.begin(60.0, Probing(), in_doubt(60.0, Probing()))
    assert not in_doubt(60.1, probing, has_failed=True)  # the answers are still to come
    assert in_doubt(60.0 + ANSWER_TIMEOUT, probing, has_failed=True)
    for host in "ab":
        probing = reachability.answered(probing, 1, host, ["a", "b"])
    assert probing.is_complete
    assert in_doubt(60.1, probing, has_failed=True)
    assert not in_doubt(60.0 + ANSWER_TIMEOUT, probing)
    assert in_doubt(60.0 + PROBE_INTERVAL, probing)


def test_an_answer_to_an_earlier_probe_does_not_count() -> None:
    probing = reachability.begin(9.0, Probing(number=1), "ab")
    assert reachability.answered(probing, 1, "a", ["b"]) == probing
    assert reachability.answered(probing, 2, "c", ["b"]) == probing


@pytest.mark.parametrize(
    "hosts, apart, left_out",
    [
        ("abc", [], {}),
        ("abc", ["bc"], {"c": "c and b do not reach each other"}),  # one direction is enough
        ("cba", ["bc", "cb"], {"b": "b and c do not reach each other"}),  # rank 0 is on c
        ("abbc", ["ab", "ba"], {"a": "a and b do not reach each other"}),
        ("abcd", ["ab", "ac", "ad"], {"a": "a and b, c, d do not reach each other"}),
    ],
)
def test_the_smaller_part_is_done_without(hosts: str, apart: list[str], left_out: dict[str, str]) -> None:
    assert reachability.left_out(reached(sorted({*hosts}), *apart), workers(*hosts)) == left_out


@given(st.sets(st.sampled_from([a + b for a in HOSTS for b in HOSTS if a != b])))
def test_those_that_are_left_reach_each_other_and_there_is_one(apart: set[str]) -> None:
    found = reachability.left_out(reached(HOSTS, *apart), workers(*HOSTS))
    left = [host for host in HOSTS if host not in found]
    assert left
    assert not any(one + other in apart for one in left for other in left)
