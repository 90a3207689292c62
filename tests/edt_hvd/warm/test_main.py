from pathlib import Path

from edt_hvd.warm import main, worker
from edt_hvd.warm.imports import Import


def test_the_imports_of_a_script_that_a_runner_runs_are_found(tmp_path: Path) -> None:
    script = tmp_path / "a model" / "main.py"
    script.parent.mkdir()
    script.write_text("import numpy\nimport beside\n")
    (script.parent / "beside.py").write_text("from PIL import Image\n")
    command = ["python", "-m", main.RUNNER, str(script), "a folder"]
    found = main._find(worker.request_of(command, 1))
    assert found.installed == (Import("edt_hvd.wmla"), Import("numpy"), Import("PIL", ("Image",)))
    assert found.own == {"beside": script.parent / "beside.py"}
    assert found.mentions_us
