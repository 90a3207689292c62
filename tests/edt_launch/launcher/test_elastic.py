"""Runs of a training, and the host-discovery script in its output directory."""

import subprocess
from unittest.mock import MagicMock

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, render
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher import elastic
from edt_launch.launcher.elastic import write_discovery_script
from edt_launch.membership.protocol import Resize


class FollowError(OSError):
    """The allocation file cannot be watched."""


def test_agents_that_were_started_ahead_end_if_the_allocation_cannot_be_followed(monkeypatch):
    supervision, run = MagicMock(), MagicMock()
    supervision.allocations.current.hosts = ()
    run.__enter__.return_value = run
    run.__exit__.return_value = None
    monkeypatch.setattr(elastic, "watching", MagicMock(side_effect=FollowError))
    one = elastic.Elastic(MagicMock(), MagicMock(resize=Resize.IN_PLACE), supervision)
    monkeypatch.setattr(one, "_new_run", lambda: run)
    one.start_ahead()
    with pytest.raises(FollowError):
        one._run_once()
    run.__exit__.assert_called_once()


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
