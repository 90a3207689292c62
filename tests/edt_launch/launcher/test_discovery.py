"""The host-discovery script, under the shells there are."""

import shutil
import subprocess

import pytest

from edt_launch.launcher import discovery

SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]

TEXT = """# edt allocation v1 generation=17
# node0:7
node1:2 devices=0,3

node-2.example.org:11\tdevices=a:b
node3:0
 node4:1
node5:1x
node6:
:7
node7:1:1
node8 :1
node~9:1
.node10:1
10.0.0.6:4
"""


@pytest.fixture(params=["plain", "with space", 'it\'s "quoted" $HOME `x`', "new\nline", "-dash"])
def folder(request, tmp_path):
    folder = tmp_path / request.param
    folder.mkdir()
    return folder


def run(shell, script):
    words = [shell, "sh", str(script)] if shell == "busybox" else [shell, str(script)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS)
def test_prints_hosts_with_slots_and_nothing_else(folder, shell):
    allocation, script = folder / "allocation", folder / "discover hosts.sh"
    allocation.write_text(TEXT)
    discovery.write(script, allocation)
    result = run(shell, script)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "node1:2\nnode-2.example.org:11\n10.0.0.6:4\n"


def test_is_executable_and_needs_no_particular_directory(folder, tmp_path, monkeypatch):
    (folder / "allocation").write_text(TEXT)
    monkeypatch.chdir(folder)
    discovery.write(folder / "script", type(folder)("allocation"))
    monkeypatch.chdir("/")
    assert subprocess.check_output([folder / "script"]).startswith(b"node1:2\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_needs_no_program_and_no_end_of_the_last_line(tmp_path, shell):
    (tmp_path / "allocation").write_text(TEXT.rstrip())
    discovery.write(tmp_path / "script", tmp_path / "allocation")
    words = [shutil.which(shell), *(["sh"] if shell == "busybox" else []), tmp_path / "script"]
    shown = subprocess.check_output(words, text=True, env={"PATH": "/nowhere"})
    assert shown.endswith("10.0.0.6:4\n")


def test_fails_while_there_is_no_file(tmp_path):
    discovery.write(tmp_path / "script", tmp_path / "missing")
    result = run("sh", tmp_path / "script")
    assert result.returncode != 0
    assert result.stdout == ""


def test_horovod_reads_it(tmp_path):
    horovod = pytest.importorskip("horovod.runner.elastic.discovery")
    (tmp_path / "allocation").write_text(TEXT)
    discovery.write(tmp_path / "script", tmp_path / "allocation")
    found = horovod.HostDiscoveryScript(str(tmp_path / "script"), 1).find_available_hosts_and_slots()
    assert found == {"node1": 2, "node-2.example.org": 11, "10.0.0.6": 4}
