from collections.abc import Sequence
from pathlib import Path

import pytest

from edt_launch.agent.protocol import Usage
from edt_launch.agent.system.usage import UsageMeter

SMI = """#!/bin/sh
echo "$1" >>"$0.asked"
[ ! -e "$0.slow" ] || sleep 600
echo "90, 1024, 300.5"
echo "30, 512, [N/A]"
"""


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def measured(meter: UsageMeter, now: float, gpus: Sequence[str]) -> Usage:
    found = meter.measure(now, gpus)
    assert found is not None
    return found


def test_gpus_are_averaged_or_added_up(smi: Path) -> None:
    meter = UsageMeter()
    meter.measure(0.0, ("0", "GPU-1"))
    now, found = 1.0, measured(meter, 1.0, ())
    while found.gpus is None:
        now += 1.0
        found = measured(meter, now, ())
    assert (found.gpus, found.gpu_memory, found.gpu_power) == (60.0, 1536 * 2**20, 300.5)
    assert smi.with_name("nvidia-smi.asked").read_text() == "--id=0,GPU-1\n"
    assert measured(meter, now + 1, ()).gpus is None


def test_a_driver_that_stands_still_is_not_waited_for(smi: Path) -> None:
    smi.with_name("nvidia-smi.slow").touch()
    meter = UsageMeter()
    meter.measure(0.0, ("0",))
    assert [measured(meter, now, ("0",)).gpus for now in (1.0, 2.0, 3.0)] == [None] * 3
    meter.close()
