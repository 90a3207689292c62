"""The example of the page about extending EDT works as it is printed."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "extending.md"
SECTION = PAGE.read_text().partition("\n## A kind of program\n")[2].partition("\n## ")[0]
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)

SCRIPT = "import os, sys; print('slot', os.environ['NICE_SLOT'], 'at', os.nice(0), *sys.argv[1:])"


def test_the_workers_of_the_example_run_as_it_says(tmp_path: Path) -> None:
    blocks = dict(BLOCK.findall(SECTION))
    installed = tmp_path / "installed"
    (metadata := installed / "nice-1.dist-info").mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nice\nVersion: 1\n")
    ((group, points),) = tomllib.loads(blocks["toml"])["project"]["entry-points"].items()
    lines = (f"{name} = {target}\n" for name, target in points.items())
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}")
    (installed / "nice_kind.py").write_text(blocks["python"])
    (tmp_path / "train.py").write_text(SCRIPT)
    words = blocks["console"].removeprefix("$ edt-launch").split()
    options = ["--output-dir", "out", "--no-warm-start"]
    command = ["edt-launch", *options, *words]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    nice = min(os.nice(0) + 10, 19)
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"[{rank}] slot {rank} at {nice} --epochs 3" for rank in range(2)], done.stderr
