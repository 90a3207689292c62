"""One run of a job's workers."""

import select
from pathlib import Path

from edt_launch.agent.protocol import Setup
from edt_launch.cluster.network import HostChecker
from edt_launch.core.file_watch import watching
from edt_launch.launcher.connectors.ssh import Ssh
from edt_launch.launcher.driver import Settings
from edt_launch.launcher.program import Workers
from edt_launch.launcher.run import Run, Tick
from edt_launch.membership.members import Limits
from simulated_world import SimulatedWorld


def test_a_change_of_the_followed_file_wakes_it_once(tmp_path: Path) -> None:
    setup = Setup(("true",), {}, str(tmp_path), False)
    settings = Settings(Limits(1, 1), Workers(["true"]), SimulatedWorld(), "127.0.0.1")
    allocation = tmp_path / "allocation"
    with (
        watching(allocation) as watch,
        Run(setup, settings, tmp_path, HostChecker(), Ssh(), watch) as run,
    ):
        assert watch is not None
        happenings = run.happenings()
        while not select.select([watch], [], [], 0)[0]:
            allocation.write_text("changed")
        while select.select([watch], [], [], 0)[0]:  # it may have been told of several writes
            assert isinstance(next(happenings), Tick)
