from edt_launch.allocator.model import HostDevices
from edt_launch.allocator.placement import grown, shrunk


def parts(**hosts):
    return tuple(HostDevices(host, tuple(devices)) for host, devices in hosts.items())


def test_shrinking_leaves_the_smallest_host_first_and_the_coordinators_last():
    held = parts(a="0", b="0123", c="01")
    assert shrunk(held, 1, set()) == parts(a="0", b="0123", c="0")
    assert shrunk(held, 3, set()) == parts(a="0", b="012")
    assert shrunk(held, 6, set()) == parts(a="0")


def test_shrinking_leaves_draining_hosts_before_all_others():
    assert shrunk(parts(a="01", b="012", c="0"), 3, {"b"}) == parts(a="01", c="0")


def test_growing_fills_own_hosts_then_the_one_that_fits_best():
    free = {"a": ["2"], "b": list("0123"), "c": list("01"), "d": list("012")}
    assert grown(parts(a="01"), 3, free) == parts(a="012", c="01")
    assert free == {"a": [], "b": list("0123"), "c": [], "d": list("012")}


def test_growing_takes_the_emptiest_host_when_none_is_enough():
    free = {"a": list("01"), "b": list("0123")}
    assert grown((), 5, free) == parts(b="0123", a="0")
