"""The recipes of the docs run, and train the same through resizes as in one process."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness import PROGRAMS, ElasticJob

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
HASHED = PROGRAMS / "hashed.py"
NAMES = sorted(path.stem for path in RECIPES.glob("*.py") if path.stem != "digits_data")


def test_there_are_recipes() -> None:
    assert len(NAMES) == 6


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_trains_the_same_through_resizes(
    name: str, job: ElasticJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, alone = RECIPES / f"{name}.py", tmp_path / "alone"
    alone.mkdir()
    monkeypatch.setenv("EDT_MODEL_DIR", str(alone))
    subprocess.run([sys.executable, HASHED, script, alone], stdin=subprocess.DEVNULL, check=True)
    monkeypatch.setenv("EDT_MODEL_DIR", str(job.results))
    job.allocate(2)
    job.start(HASHED, script, job.results, "--delay", 1.0)
    for size in (2, 3, 1, 2):
        job.allocate(size)
        job.until_size(size)
    assert job.end() == 0, job.stdout + job.stderr
    assert len(job.events("world")) == 4
    assert (job.results / "sha").read_text() == (alone / "sha").read_text()
    made = [sorted(path.name for path in folder.rglob("*.pt")) for folder in (alone, job.results)]
    assert made[0] == made[1]
