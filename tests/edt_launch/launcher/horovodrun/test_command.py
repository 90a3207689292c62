"""The command line of horovodrun."""

from pathlib import Path
from typing import Any

from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.horovodrun.command import DISCOVER, command
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.transports.ssh import SshOptions

FILE = Path("/a folder/run/allocation")
PROGRAM = ["python", "train.py"]


def words(*hosts: HostSlots, changes: bool = False, **options: Any) -> list[str]:
    chosen = RunOptions(start_timeout=99.5, **options)
    followed = Path("theirs") if changes else None
    plan = Plan(SizeLimits(1, 4), RunDir(Path("/a folder")), follow=followed, options=chosen)
    return command(PROGRAM, plan, Allocation(1, hosts), "lo")


def test_workers_with_devices_are_shown_those_of_their_host():
    start = words(HostSlots("h1", 2, ("0", "3"))).index("100") + 1
    shown = [DISCOVER, str(FILE), "--exec", *PROGRAM]
    assert words(HostSlots("h1", 2, ("0", "3")))[start:] == shown
    assert words(HostSlots("h1", 2), changes=True)[start:] == shown, "devices may be named later"


def test_how_to_reach_hosts_is_passed_on():
    found = words(HostSlots("h1", 1), groups=(SshOptions(2222, Path("/my keys/id")),))
    assert found[-6:-2] == ["--ssh-port", "2222", "--ssh-identity-file", "'/my keys/id'"]
