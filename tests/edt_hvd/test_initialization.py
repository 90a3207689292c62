"""How a process begins: what it is told by its environment, and what it leaves alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import edt_hvd
from edt_hvd import initialization, observing
from edt_hvd.debug.faults import Injector
from edt_hvd.debug.recording import Recorder
from edt_hvd.world import world


@pytest.fixture
def uninitialized(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(world, "_world", None)
    monkeypatch.setattr(observing, "_observers", ())
    monkeypatch.delenv("EDT_RECORD", raising=False)
    monkeypatch.delenv("EDT_FAULTS", raising=False)
    return monkeypatch


def test_nobody_observes_unless_asked_for(uninitialized: pytest.MonkeyPatch) -> None:
    uninitialized.setenv("EDT_RECORD", "")
    uninitialized.setenv("EDT_FAULTS", "")
    edt_hvd.init()
    assert observing.observers() == ()


def test_observers_are_registered_before_the_world_is_entered(
    uninitialized: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "faults"
    script.write_text("faults = []")
    uninitialized.setenv("EDT_RECORD", str(tmp_path))
    uninitialized.setenv("EDT_FAULTS", str(script))
    seen: list[list[type[object]]] = []
    note = lambda self: seen.append([type(each) for each in observing.observers()])  # noqa: E731
    uninitialized.setattr(initialization.FixedWorld, "start", note)
    edt_hvd.init()
    edt_hvd.init()
    assert seen == [[Recorder, Injector]]


def test_importing_the_library_imports_nothing_for_debugging() -> None:
    program = "import sys, edt_hvd; edt_hvd.init(); print([n for n in sys.modules if 'edt_hvd.debug' in n])"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDT_")}
    run = subprocess.run([sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"[]\n"


def test_init_leaves_the_scripts_number_of_threads() -> None:
    program = (
        "import torch; torch.set_num_threads(3); import edt_hvd; edt_hvd.init(); "
        "print(torch.get_num_threads())"
    )
    environ = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    run = subprocess.run([sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"3\n"


def test_who_is_alone_leaves_its_children_free_to_be_workers() -> None:
    program = (
        "import os; before = dict(os.environ); import edt_hvd; edt_hvd.init(); "
        "print({name for name in os.environ if name.startswith('HOROVOD_')} - set(before), edt_hvd.size())"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "set() 1\n"


def test_processes_of_mpirun_that_would_train_apart_end() -> None:
    gloo = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
    environment = os.environ | gloo | {"OMPI_COMM_WORLD_SIZE": "3"}
    program = [sys.executable, "-c", "import edt_hvd; edt_hvd.init()"]
    found = subprocess.run(program, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    assert found.returncode == 1
    assert "a world of 1 where OMPI_COMM_WORLD_SIZE=3" in found.stderr
    assert "unset HOROVOD_CONTROLLER" in found.stderr
