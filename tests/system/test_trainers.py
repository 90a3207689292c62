"""Programs of trainers, with released packages and the trainers' own checkpoints, grow and shrink."""

import importlib.util

import pytest

from harness import PROGRAMS, ElasticJob

PACKAGES = {"hugging_face": "transformers", "lightning": "pytorch_lightning", "accelerator": "accelerate"}


@pytest.mark.full
@pytest.mark.parametrize("program", PACKAGES)
def test_a_trainer_is_resized_at_its_own_checkpoints(job: ElasticJob, program: str) -> None:
    if importlib.util.find_spec(PACKAGES[program]) is None:
        pytest.skip(f"{PACKAGES[program]} is not installed: uv pip install --group trainers")
    job.sizes = ["--program", "torchrun", "--nnodes", "1:2"]
    job.allocate(1)
    job.start(PROGRAMS / "trainers" / f"{program}.py", job.results)

    def rows() -> list[tuple[int, int]]:
        path = job.results / "steps"
        text = path.read_text() if path.exists() else ""
        lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [(int(step), int(size)) for step, size in lines]

    job.until(lambda: len(rows()) > 3)
    job.allocate(2)
    job.until(lambda: rows()[-1][1] == 2)
    job.allocate(1)
    job.until(lambda: rows()[-1][1] == 1)
    (job.results / "hurry").touch()
    assert job.end() == 0, job.stdout + job.stderr
    steps = [step for step, _ in rows()]
    assert steps == list(range(1, 1501))
    assert [event["size"] for event in job.events("world")] == [1, 2, 1]
