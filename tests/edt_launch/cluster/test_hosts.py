"""Hosts, cut and spread to what a job can use."""

from pathlib import Path

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.discovery_script import Script, ScriptOptions
from edt_launch.cluster.host_file import HostFile, HostFileOptions
from edt_launch.cluster.hosts import HostOptions, HostSource, cap
from edt_launch.cluster.slurm import Slurm

ODD = ("n%de", "-oProxyCommand=x", "n;de")


def host_file(folder: Path) -> HostSource | None:
    (folder / "hosts").write_text("".join(f"{name} slots=1\n" for name in ("good", *ODD)))
    return HostFile.detect(HostOptions(groups=(HostFileOptions(folder / "hosts"),)))


def script(folder: Path) -> HostSource | None:
    (folder / "s").write_text("#!/bin/sh\n" + "".join(f"echo '{name}:1'\n" for name in ("good", *ODD)))
    (folder / "s").chmod(0o755)
    return Script.detect(HostOptions(groups=(ScriptOptions(folder / "s"),)))


def slurm(folder: Path) -> HostSource | None:
    variables = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": ",".join(("good", *ODD)),
        "SLURM_TASKS_PER_NODE": "1(x4)",
    }
    return Slurm.detect(HostOptions(variables))


@pytest.mark.parametrize("source", [host_file, script, slurm])
def test_odd_names_are_left_out_with_a_message_each(source, tmp_path, caplog) -> None:
    found = source(tmp_path)
    for _ in range(2):
        assert [host.host for host in found.hosts()] == ["good"]
    left_out = [record.args[1] for record in caplog.records]
    assert all(any(name in text for text in left_out) for name in ODD)
    assert len(left_out) == len(ODD)


def test_slots_beyond_the_limit_are_not_used() -> None:
    hosts = (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 3, ("a", "b", "c")), HostSlots("h3", 1))
    assert cap(hosts, 3) == (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 1, ("a",)))
    assert cap(hosts, 9) == hosts
