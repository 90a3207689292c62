"""How a process begins: what it is told by its environment, and what it leaves alone."""

import os
from pathlib import Path

import pytest

import edt_hvd
from edt_hvd import initialization, observing
from edt_hvd.debug.faults import Injector
from edt_hvd.debug.recording import Recorder
from edt_hvd.world import world
from interpreters import Interpreters


@pytest.fixture
def uninitialized(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(world, "_world", None)
    monkeypatch.setattr(observing, "_observers", ())
    monkeypatch.delenv("EDT_RECORD", raising=False)
    monkeypatch.delenv("EDT_FAULTS", raising=False)
    return monkeypatch


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


def test_a_process_that_is_alone_leaves_its_surroundings_as_they_are(interpreters: Interpreters) -> None:
    """Nothing for debugging is imported, and its children are free to be workers."""
    program = (
        "import os, sys, edt_hvd; before = dict(os.environ); edt_hvd.init(); "
        "print(edt_hvd.size(), [n for n in sys.modules if 'edt_hvd.debug' in n], "
        "{name for name in os.environ if name.startswith('HOROVOD_')} - set(before))"
    )
    found = interpreters.run(program, without("HOROVOD_", "EDT_"))
    assert found.stdout == "1 [] set()\n"


def test_init_leaves_the_scripts_number_of_threads(interpreters: Interpreters) -> None:
    program = (
        "import torch, edt_hvd; torch.set_num_threads(3); edt_hvd.init(); print(torch.get_num_threads())"
    )
    assert interpreters.run(program, without("OMP_NUM_THREADS")).stdout == "3\n"


def test_processes_of_mpirun_that_would_train_apart_end(interpreters: Interpreters) -> None:
    gloo = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
    environment = os.environ | gloo | {"OMPI_COMM_WORLD_SIZE": "3"}
    found = interpreters.run("import edt_hvd; edt_hvd.init()", environment)
    assert found.returncode == 1
    assert "a world of 1 where OMPI_COMM_WORLD_SIZE=3" in found.stderr
    assert "unset HOROVOD_CONTROLLER" in found.stderr


def without(*prefixes: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
