import threading

from edt_launch.service.bus import Bus, Topic


def test_what_came_before_the_wait_is_not_missed() -> None:
    bus = Bus()
    seen = bus.version(Topic.DESIRED_STATE)
    bus.notify(Topic.DESIRED_STATE)
    assert bus.wait(Topic.DESIRED_STATE, seen=seen, timeout=60.0) == seen + 1


def test_a_waiting_thread_is_woken() -> None:
    bus, versions = Bus(), []
    thread = threading.Thread(
        target=lambda: versions.append(bus.wait(Topic.DESIRED_STATE, Topic.HOSTS, seen=0, timeout=60.0))
    )
    thread.start()
    bus.notify(Topic.HOSTS, Topic.JOBS)
    thread.join(60.0)
    assert versions == [1]
