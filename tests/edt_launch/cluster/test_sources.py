from pathlib import Path

from edt_launch.cluster.host_file import HostFile
from edt_launch.cluster.slurm import Slurm
from edt_launch.cluster.sources import Cores, HostDevices, Slots, Surroundings, choose
from edt_launch.service.settings import Settings

SLURM = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1"}


def around(environment: dict[str, str] | None = None, **settings: object) -> Surroundings:
    return Surroundings(Settings.model_validate(settings), environment or {"CUDA_VISIBLE_DEVICES": ""})


def test_what_the_settings_say_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("n1 slots=2\n")
    assert choose(around(SLURM, slots=3, hostfile=file)) == Slots(3)
    assert isinstance(choose(around(SLURM, hostfile=file)), HostFile)
    assert isinstance(choose(around(SLURM)), Slurm)


def test_a_machine_with_nothing_else_has_cores() -> None:
    source = choose(around())
    assert isinstance(source, Cores)
    assert len(source.hosts()[0].devices) == source.count >= 1


def test_slots_are_no_gpus() -> None:
    assert Slots(2).hosts() == (HostDevices("localhost", ("cpu0", "cpu1")),)
