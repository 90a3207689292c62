"""Where everything of a WMLA job is."""

import uuid
from pathlib import Path

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.layout import ResultDir, driver_id, executor_id

RESULT = ResultDir(Path("/results/a job"))


def test_a_process_has_a_log_folder_for_each_host_and_a_file_for_each_stream():
    assert RESULT.log_dir("1-abc", "node1") == Path("/results/a job/log/1-abc.node1")
    assert RESULT.printed("1-abc", "stdout") == Path("/results/a job/run/processes/1-abc/stdout")


def test_the_log_folders_of_a_process_are_found_on_whatever_host(tmp_path):
    result = ResultDir(tmp_path)
    for name in ("driver-1.b", "driver-1.a.c", "driver-2.a"):
        (result.log / name).mkdir(parents=True)
    assert [path.name for path in result.log_dirs("driver-1")] == ["driver-1.a.c", "driver-1.b"]


def test_every_training_has_checkpoints_of_its_own():
    assert RESULT.checkpoints(1) == RESULT.checkpoint
    assert RESULT.checkpoints(2) == RESULT.checkpoint / "training-2"


def test_ids_of_executors_can_be_computed():
    first, second = executor_id("job-1", 1), executor_id("job-1", 2)
    number, _, rest = first.partition("-")
    assert number == "1"
    assert uuid.UUID(rest)
    assert first == executor_id("job-1", 1)
    assert len({first, second, executor_id("job-2", 1)}) == 3


def test_ids_of_drivers_have_the_usual_shape():
    unique = uuid.UUID(int=7)
    assert driver_id("20260102030405", unique) == f"driver-20260102030405-0001-{unique}"


def test_only_one_framework_is_elastic():
    assert [framework for framework in Framework if framework.is_elastic] == [Framework.ELASTIC]
