"""Which source of hosts counts."""

from pathlib import Path

from edt_launch.cluster.discovery_script import Script, ScriptOptions
from edt_launch.cluster.host_file import HostFile, HostFileOptions, HostList, HostListOptions
from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.local import Slots, SlotsOptions
from edt_launch.cluster.slurm import Slurm
from edt_launch.cluster.sources import choose

SLURM = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1"}


def test_what_the_options_say_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("n1 slots=2\n")
    assert choose(HostOptions(SLURM, (SlotsOptions(3), HostFileOptions(file)))) == Slots(3)
    assert isinstance(choose(HostOptions(SLURM, (HostFileOptions(file),))), HostFile)
    assert isinstance(choose(HostOptions(SLURM, (HostListOptions("n2"),))), HostList)
    assert choose(HostOptions(SLURM, (ScriptOptions(Path("/bin/sh")),))) == Script(Path("/bin/sh"))
    assert isinstance(choose(HostOptions(SLURM)), Slurm)
