"""Where everything of a WMLA job is."""

import uuid
from pathlib import Path

from edt_launch.adapters.wmla.running.layout import ResultDir, executor_id

RESULT = ResultDir(Path("/results/a job"))


def test_the_log_folders_of_a_process_are_found_on_whatever_host(tmp_path):
    result = ResultDir(tmp_path)
    for name in ("driver-1.b", "driver-1.a.c", "driver-2.a"):
        (result.log / name).mkdir(parents=True)
    assert [path.name for path in result.log_dirs("driver-1")] == ["driver-1.a.c", "driver-1.b"]


def test_ids_of_executors_can_be_computed():
    first, second = executor_id("job-1", 1), executor_id("job-1", 2)
    number, _, rest = first.partition("-")
    assert number == "1"
    assert uuid.UUID(rest)
    assert first == executor_id("job-1", 1)
    assert len({first, second, executor_id("job-2", 1)}) == 3
