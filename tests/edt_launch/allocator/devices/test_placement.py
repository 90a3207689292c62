import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.devices.placement import Free, grown, shrunk
from edt_launch.allocator.model import HostDevices


def parts(**hosts):
    return tuple(HostDevices(host, tuple(devices)) for host, devices in hosts.items())


def test_shrinking_leaves_draining_hosts_then_the_smallest_and_the_coordinators_last():
    held = parts(a="0", b="0123", c="01")
    assert shrunk(held, 1, set()) == parts(a="0", b="0123", c="0")
    assert shrunk(held, 3, set()) == parts(a="0", b="012")
    assert shrunk(held, 6, set()) == parts(a="0")
    assert shrunk(held, 3, {"b"}) == parts(a="0", b="0", c="01")


def test_growing_fills_own_hosts_then_the_one_that_fits_best():
    free = Free({"a": "2", "b": "0123", "c": "01", "d": "012"})
    assert grown(parts(a="01"), 3, free) == parts(a="012", c="01")
    assert {host: "".join(free[host]) for host in "abcd"} == {"a": "", "b": "0123", "c": "", "d": "012"}
    assert free.count == 7


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 6), min_size=1),
    st.lists(st.tuples(st.integers(1, 8), st.sets(st.sampled_from("abcdefgh"), max_size=2)), max_size=20),
)
def test_the_best_host_is_found_whatever_has_been_taken(sizes, wishes):
    left = {host: list(map(str, range(size))) for host, size in sizes.items()}
    free = Free(left)
    for count, own in wishes:
        known = [host for host in own if left.get(host)] or [host for host in left if left[host]]
        if not known:
            with pytest.raises(ValueError, match="no device is free"):
                free.best(count, own)
            return
        fitting = [host for host in known if len(left[host]) >= count]
        host = free.best(count, sorted(own))
        best = (min if fitting else max)(len(left[name]) for name in fitting or known)
        assert host in known
        assert len(left[host]) == best
        assert free.take(host, count) == left[host][:count]
        del left[host][:count]
        assert free[host] == left[host]
        assert free.count == sum(map(len, left.values()))
