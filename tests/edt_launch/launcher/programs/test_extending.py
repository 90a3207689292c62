"""The example of the page about extending EDT works as it is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "extending.md"
SECTION = PAGE.read_text().partition("\n## A kind of program\n")[2].partition("\n## ")[0]
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)

LAUNCH = """
import sys
import edt_launch.adapters
from edt_launch.launcher.programs import kinds
edt_launch.adapters.__path__.append(sys.argv.pop(1))
kinds.KINDS = (*kinds.KINDS[:-1], sys.argv.pop(1), kinds.KINDS[-1])
from edt_launch.launcher.command import main
main()
"""
SCRIPT = "import os, sys; print('slot', os.environ['NICE_SLOT'], 'at', os.nice(0), *sys.argv[1:])"


def test_the_workers_of_the_example_run_as_it_says(tmp_path: Path) -> None:
    blocks = dict(BLOCK.findall(SECTION))
    folder = tmp_path / "adapters" / "nice"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "kind.py").write_text(blocks["python"])
    (tmp_path / "train.py").write_text(SCRIPT)
    name = blocks["text"].strip('",\n')
    words = blocks["console"].removeprefix("$ edt-launch").split()
    options = ["--output-dir", "out", "--no-warm-start"]
    command = [sys.executable, "-c", LAUNCH, str(folder.parent), name, *options, *words]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    nice = min(os.nice(0) + 10, 19)
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"[{rank}] slot {rank} at {nice} --epochs 3" for rank in range(2)], done.stderr
