import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from edt_launch.agent.usage import UsageMeter
from edt_launch.cluster import nvidia
from edt_launch.cluster.nvidia import Load


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_processes_below_this_one_are_added_up(busy: subprocess.Popen[bytes]) -> None:
    meter = UsageMeter()
    assert meter.measure(0.0, ()) is None
    used, now = 0.0, 1.0
    while not used:  # until the kernel has counted some of its time
        found = meter.measure(now, ())
        assert found is not None
        used, now = found.processors, now + 1.0
    assert found.memory > 2**20
    assert (found.gpus, found.gpu_memory, found.gpu_power) == (None, None, None)


def test_gpus_are_averaged_or_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"0": Load(1024, 90.0, 300.0), "1": Load(512, 30.0)}

    class Driver:
        def loads(self, names: Any) -> Any:
            return {name: known[name] for name in names if name in known}

    monkeypatch.setattr(nvidia, "Nvml", Driver)
    meter = UsageMeter()
    meter.measure(0.0, ("0", "1"))
    found = meter.measure(1.0, ("0", "1", "2"))
    assert found is not None
    assert (found.gpus, found.gpu_memory, found.gpu_power) == (60.0, 1536 * 2**20, 300.0)
    unknown = meter.measure(2.0, ("2",))
    assert unknown is not None
    assert unknown.gpus is None
