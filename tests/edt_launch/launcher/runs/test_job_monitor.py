"""What a user is told of what happens to a job."""

from pathlib import Path
from typing import Any

from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import HOST_LOST
from edt_launch.core.history.events import Failed, HostReachable, HostUnreachable
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.runs.job_monitor import JobMonitor


class Recorder:
    """A view that keeps what it is told, and a log of events that keeps nothing."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def message(self, text: str) -> None:
        self.told.append(text)

    def write(self, event: Any) -> None:
        pass


def test_a_host_that_is_away_is_told_once_for_each_slot_until_it_is_back(tmp_path: Path) -> None:
    view = Recorder()
    monitor = JobMonitor(Plan(SizeLimits(1, 3), RunDir(tmp_path)), view, view)  # type: ignore[arg-type]
    lost = [Failed(n, "h2", n % 2, None, n % 2, HOST_LOST, retry_after=5.0) for n in range(4)]
    away = [HostUnreachable("h2", "it is down"), *lost]
    for event in (*away, Failed(9, "h2", 0, None, 0, 1), HostReachable("h2"), *away):
        monitor.note(event)
    said = [f"rank {rank} on h2 has failed: exit code 255; its slot is tried again in 5 s" for rank in (0, 1)]
    other = "rank 0 on h2 has failed: exit code 1"
    assert view.told == [*said, other, "h2 can be reached again", *said]
