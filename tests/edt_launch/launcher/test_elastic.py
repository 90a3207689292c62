"""Runs of a training, and the host-discovery script in its output directory."""

import subprocess

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, render
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.elastic import write_discovery_script

HOSTS = (HostSlots("node1", 2, ("0", "3")), HostSlots("node-2.example.org", 11), HostSlots("10.0.0.6", 4))


@pytest.fixture(params=['it\'s "quoted" $HOME `x`', "new\nline", "-dash", "no \udcff text"])
def paths(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = RunDir(type(tmp_path)(request.param))
    paths.run.mkdir(parents=True)
    write_discovery_script(paths)
    return RunDir(paths.root.absolute())


def test_it_prints_hosts_with_slots_and_needs_no_particular_directory(paths, monkeypatch):
    paths.allocation.write_text(render(Allocation(17, HOSTS)))
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", "/nowhere")
    shown = subprocess.check_output([paths.discovery_script], text=True)
    assert shown == "node1:2\nnode-2.example.org:11\n10.0.0.6:4\n"
