"""What becomes of workers and allocations, as seen from outside."""

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.core.history.events import Following, Released, Started
from edt_launch.launcher.horovodrun.observed import Noted, Observed, Process, Processes, of_process
from edt_launch.membership.protocol import Slot

A0, A1 = Process(Slot("a", 0), 4), Process(Slot("a", 1), 5)


def allocated(generation: int, *devices: str) -> Allocation:
    return Allocation(generation, (HostSlots("a", len(devices), devices),))


def test_workers_start_and_are_released():
    seen = Observed().allocate(allocated(1, "d0", "d1"))
    seen, changes = seen.look(Processes({10: A0, 11: A1}), None)
    assert changes == [Started(0, "a", 0, "d0", 4), Started(1, "a", 1, "d1", 5)]
    seen, changes = seen.look(Processes({10: A0}), None)
    assert changes == [Released(1, "a", 1, "d1")]
    seen, changes = seen.look(Processes({10: A0, 12: A1}), None)
    assert changes == [Started(2, "a", 1, "d1", 5)]


def test_a_generation_is_followed_once_it_was_printed_twice():
    seen, found = Observed(), Processes()
    for noted, followed in [
        (None, False),
        (Noted(3, at=1), False),
        (Noted(3, at=1), False),
        (Noted(3, at=2), False),  # from now on all that was to be started is being started
        (Noted(3, at=2), True),
        (Noted(3, at=3), False),
    ]:
        seen, changes = seen.look(found, noted)
        assert changes == ([Following(3)] if followed else [])


def test_what_an_older_generation_may_still_start_is_waited_for():
    seen = Observed()
    starting = Processes(starting=frozenset({20, 21}))
    for at in (1, 2, 3):
        seen, changes = seen.look(starting, Noted(3, at))
        assert changes == []
    seen, changes = seen.look(Processes({30: A0}, starting=frozenset({21})), Noted(3, 4))
    assert changes == [Started(0, "a", 0, None, 4)]
    seen, changes = seen.look(Processes({30: A0}, starting=frozenset({22})), Noted(3, 5))  # 22 came later
    assert changes == [Following(3)]


LOCAL = [
    "/bin/sh",
    "-c",
    "HOROVOD_HOSTNAME=localhost HOROVOD_RANK=3 HOROVOD_LOCAL_RANK=1 PATH=/x python a.py",
]
REMOTE = [
    "ssh",
    "-o",
    "x",
    "node2",
    "cd /w ; HOROVOD_HOSTNAME=node2 HOROVOD_RANK=2 HOROVOD_LOCAL_RANK=0 python a.py",
]


@pytest.mark.parametrize(
    "words, environment, slot",
    [
        (LOCAL, {}, Process(Slot("localhost", 1), 3)),
        (REMOTE, {}, Process(Slot("node2", 0), 2)),
        (
            ["python", "a.py"],
            {"HOROVOD_HOSTNAME": "h", "HOROVOD_LOCAL_RANK": "2", "HOROVOD_RANK": "7"},
            Process(Slot("h", 2), 7),
        ),
        (REMOTE, {"HOROVOD_HOSTNAME": "h", "HOROVOD_LOCAL_RANK": "2"}, Process(Slot("node2", 0), 2)),
        (["edt-discover", "file"], {}, None),
        (["python", "a.py"], {"HOROVOD_HOSTNAME": "h", "HOROVOD_LOCAL_RANK": "x"}, None),
    ],
)
def test_a_process_says_its_slot(words, environment, slot):
    assert of_process(words, environment) == slot
