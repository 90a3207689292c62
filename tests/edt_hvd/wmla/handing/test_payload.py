import importlib
import sys
from pathlib import Path

import pytest
import torch

from edt_hvd.wmla.channel import Address
from edt_hvd.wmla.handing import payload
from edt_hvd.wmla.handing.payload import Payload
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.schedule import Schedule


def example() -> Payload:
    model = torch.nn.Linear(2, 2)
    scale = 3.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    program = Program(model, optimizer, lambda output, target: output.sum() * scale, lambda: None)
    return Payload(program, Schedule(1, 8, 16, 2), Address(("127.0.0.1",), 7, "secret"))


def test_model_and_optimizer_stay_together(tmp_path: Path) -> None:
    written = example()
    path = tmp_path / "run" / "training-1.pkl"
    payload.write(path, written)
    found = payload.read(path)
    assert (found.schedule, found.results) == (written.schedule, written.results)
    (group,) = found.program.optimizer.param_groups
    assert list(map(id, group["params"])) == list(map(id, found.program.model.parameters()))
    assert found.program.loss_function(torch.ones(2), None).item() == 6.0


def test_the_file_is_its_owners_and_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "training-1.pkl"
    for _ in range(2):
        payload.write(path, example())
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_executors_look_where_the_driver_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/shared/program", *sys.path])
    monkeypatch.chdir(tmp_path)
    payload.write(tmp_path / "training-1.pkl", example())
    monkeypatch.setattr(sys, "path", ["/of/the/executor", *sys.path[2:]])
    payload.read(tmp_path / "training-1.pkl")
    assert sys.path[:2] == [str(tmp_path), "/shared/program"]
    assert sys.path[-1] == "/of/the/executor"


def test_modules_find_the_arguments_of_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "options_beside.py").write_text(
        "import sys\nSEEN = list(sys.argv)\ndef make(): return SEEN\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "argv", ["/a/main.py", "--scale", "5"])
    written = example()
    written.program.datasets_function = importlib.import_module("options_beside").make
    payload.write(tmp_path / "training-1.pkl", written)
    monkeypatch.delitem(sys.modules, "options_beside")
    monkeypatch.setattr(sys, "argv", ["/of/executor.py", "training-1.pkl"])
    found = payload.read(tmp_path / "training-1.pkl")
    assert found.program.datasets_function() == sys.argv == ["/a/main.py", "--scale", "5"]
