"""What horovodrun prints, passed on and kept."""

import io
from pathlib import Path

import pytest

from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.horovodrun.output import HorovodrunOutput


@pytest.fixture
def paths(tmp_path: Path) -> RunDir:
    one = RunDir(tmp_path)
    one.log.mkdir()
    return one


def test_everything_is_passed_on_as_it_is(paths):
    out, err = io.BytesIO(), io.BytesIO()
    output = HorovodrunOutput(paths, {"stdout": out, "stderr": err}, print)
    for data in (b"[0]<stdout>:a\n[1", b"]<stdout>:b\xff\n", b"half"):
        output.take("stdout", data)
    output.take("stderr", b"[0]<stderr>:c\n")
    output.close()
    assert out.getvalue() == b"[0]<stdout>:a\n[1]<stdout>:b\xff\nhalf"
    assert err.getvalue() == b"[0]<stderr>:c\n"


def test_the_first_failure_is_remembered(paths):
    output = HorovodrunOutput(paths, {}, print)
    output.take("stdout", b"[0]<stdout>:Process 9 exit with status code 9.\n")
    assert output.first_failure is None
    output.take("stdout", b"Process 1 exit with status code 3.\nProcess 0 exit with status code 143.\n")
    output.close()
    assert output.first_failure == f"rank 1 at its start, exit code 3, {paths.rank_log('1')}"


def test_workers_that_horovod_ends_are_no_reason(paths):
    output = HorovodrunOutput(paths, {}, print)
    output.take("stderr", b"ERROR:root:failed to activate new hosts -> stop running\nTraceback:\n")
    output.take("stderr", b"Process 0 exit with status code 143.\n")
    output.close()
    assert output.first_failure is None
    assert output.stop_reason == "failed to activate new hosts"
