"""The command edt-discover."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edt_launch.tools import discover

TEXT = "# edt allocation v1 generation=7\nnode1:2 devices=0,3\n# a comment\nnode2:0\nnode3:1\n"
BIN = Path(sys.executable).parent


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "an allocation"
    path.write_text(TEXT)
    return path


def test_prints_hosts_that_have_slots(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert discover.main([str(file)]) == 0
    assert capsys.readouterr().out == "node1:2\nnode3:1\n"


@pytest.mark.parametrize(
    "text, said",
    [
        (TEXT[:-1], "is it half written?"),
        ("# edt allocation v1 generation=7\nnode1:x\n", "line 2: 'x': expected a whole number of slots"),
    ],
)
def test_what_makes_no_sense_is_an_error_and_prints_nothing(
    text: str, said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert discover.main([str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


@pytest.mark.parametrize(
    "host, devices", [("node1", "0,3 its 3"), ("node3", "its none"), ("node9", "its none")]
)
def test_a_worker_finds_the_devices_of_its_host(host: str, devices: str, file: Path) -> None:
    shown = subprocess.run(
        [BIN / "edt-discover", file, "--exec", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES its $EDT_DEVICE"],
        env=os.environ
        | {"HOROVOD_HOSTNAME": host, "HOROVOD_LOCAL_RANK": "1"}
        | {"CUDA_VISIBLE_DEVICES": "all", "EDT_DEVICE": "none"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == f"{devices}\n"
