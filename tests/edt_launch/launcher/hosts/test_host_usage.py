from edt_launch.agent.protocol import Usage
from edt_launch.core.history import events
from edt_launch.launcher.hosts.host_usage import MAX_AGE, HostUsage

A = Usage(1.5, 100, 80.0, 1000, 250.0)
B = Usage(0.5, 50, 40.0, 500, None)
C = Usage(2.0, 25, None, None, None)


def test_hosts_are_added_up_and_told_of_when_one_of_them_measures() -> None:
    usage = HostUsage()
    assert usage.take(0.0, "a", A) == events.Usage(1.5, 100, 80.0, 1000, 250.0)
    assert usage.take(1.0, "b", B) is None
    assert usage.take(2.0, "c", C) is None
    assert usage.take(9.99, "a", A) == events.Usage(4.0, 175, 60.0, 1500, 250.0)
    assert usage.take(2 * MAX_AGE, "c", C) == events.Usage(2.0, 25, None, None, None)
    assert usage.take(2 * MAX_AGE + 1, "a", A) is None
