from pathlib import Path

from edt_hvd.wmla.notebook.remote import Training
from edt_hvd.wmla.random_states import RandomStates


def test_what_the_kernel_wants_travels_in_the_jobs_code(tmp_path: Path) -> None:
    asked = Training(3, 4, {"train()'s epochs": "2"}, RandomStates.now().as_json())
    asked.write(tmp_path)
    found = Training.read(tmp_path)
    assert (found.number, found.max_workers, found.call) == (3, 4, asked.call)
    states = RandomStates.from_json(found.random_states)
    assert states.as_json()["torch"] == asked.random_states["torch"]
