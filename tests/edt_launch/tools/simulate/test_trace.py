import json
import re

import pytest

from edt_launch.core.errors import TraceError
from edt_launch.tools.simulate.trace import read
from small import HEADER, TRACES


def write(folder, *lines, header=HEADER):
    path = folder / "some trace.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_a_trace_has_its_jobs_in_the_order_of_submission(tmp_path):
    found = read(write(tmp_path, "b,20,eve,2,1,4,100", "a,10,ada,1,1,2,50"))
    assert [job.id for job in found.jobs] == ["a", "b"]
    second = found.jobs[1]
    assert (second.user, second.requested, second.min, second.max) == ("eve", 2, 1, 4)
    assert second.run_time.seconds(4, 1) == 25.0
    assert not found.has_priorities
    assert any("synthetic" in note for note in found.notes)


def test_blanks_after_commas_and_the_mark_of_an_editor_are_no_part_of_names(tmp_path):
    path = write(tmp_path, "a, 10, ada, 1, 1, 2, 50", header="\ufeff" + HEADER.replace(",", ", "))
    (found,) = read(path).jobs
    assert (found.id, found.user, found.max) == ("a", "ada", 2)


def test_unix_times_become_times_of_the_trace(tmp_path):
    found = read(write(tmp_path, "a,1700000100,ada,1,1,2,50", "b,1700000000,ada,1,1,2,50"))
    assert [(job.id, job.submitted) for job in found.jobs] == [("b", 0.0), ("a", 100.0)]
    assert "times count from the first submission, 1700000000 s" in found.notes


def test_priorities_and_weights_are_read_where_there_are_some(tmp_path):
    found = read(write(tmp_path, "a,10,ada,1,1,2,50,7,2.5", header=HEADER + ",priority,weight"))
    assert found.has_priorities
    assert (found.jobs[0].priority, found.jobs[0].weight) == (7, 2.5)


def test_measured_step_times_make_the_run_time():
    found = read(TRACES / "pollux" / "tuned-1.csv")
    apps = json.loads((TRACES / "pollux" / "apps_fixed_batch.json").read_text())
    app = apps["cifar10:2048"]
    assert len(found.jobs) == 160
    assert found.jobs[0].run_time.seconds(8, 3) == app["total_steps"] * app["step_time"]["8"]["3"]


def test_batch_adaptive_jobs_may_use_all_that_was_measured():
    fixed = read(TRACES / "pollux" / "tuned-1.csv").jobs[1]
    adaptive = read(TRACES / "pollux" / "tuned-1.csv", adaptive=True).jobs[1]
    assert (fixed.max, adaptive.max) == (32, 64)
    assert adaptive.run_time.seconds(2, 1) == 9240.06


def test_throughput_is_relative_to_what_was_requested():
    found = read(TRACES / "shockwave" / "120_0.2_5_100_40_25_32gpus.csv")
    first = found.jobs[0]  # LM (batch size 10), on one GPU
    assert first.run_time.seconds(1, 1) == 1224.8
    assert first.run_time.seconds(4, 1) == pytest.approx(1224.8 * 94.9109 / 175.0147)


def test_nobody_uses_more_gpus_than_were_measured():
    found = read(TRACES / "shockwave" / "120_0.2_5_100_40_25_32gpus.csv")
    recommendation = found.jobs[4]
    assert (recommendation.max, recommendation.run_time.largest) == (1, 1)


def test_all_traces_can_be_read():
    for path in TRACES.glob("*/*.csv"):
        assert read(path).jobs


@pytest.mark.parametrize(
    "line, value, expected",
    [
        ("a,x,ada,1,1,2,50", "submit_time_s=x", "a number"),
        ("a,-1,ada,1,1,2,50", "submit_time_s=-1", "at least 0"),
        ("a,nan,ada,1,1,2,50", "submit_time_s=nan", "at least 0"),
        ("a,1,ada,1.5,1,2,50", "gpus_requested=1.5", "a whole number"),
        ("a,1,ada,1,0,2,50", "gpus_min=0", "at least 1"),
        ("a,1,ada,1,3,2,50", "gpus_max=2", "at least 3"),
        ("a,1,ada,1,1,99999999999999999999,50", "gpus_max=99999999999999999999", "at most 1000000000"),
        ("a,1,ada,1,1,2,0", "service_gpu_s=0", "above 0"),
        ("a,1,ada,1,1,2,1e300", "service_gpu_s=1e300", "at most 1e+09"),
        ("a,1e15,ada,1,1,2,50", "submit_time_s=1e15", "after the first submission"),
        ("a,1,ada,3,1,2,50", "gpus_requested=3", "at most 2, its gpus_max"),
        ("a,1,,1,1,2,50", "user=", "a name"),
        (" ,1,ada,1,1,2,50", "job_id=", "a name"),
        ("a,1,ada,1,1,2", "a,1,ada,1,1,2", "7 values"),
        ("a,1,ada,1,1,2,50,60", "a,1,ada,1,1,2,50", "7 values"),
        ("first,1,ada,1,1,2,50", "job_id=first", "a name that no line above has"),
    ],
)
def test_a_bad_line_is_named_with_its_value_and_what_was_expected(tmp_path, line, value, expected):
    path = write(tmp_path, "first,0,ada,1,1,2,50", line)
    with pytest.raises(TraceError, match=re.escape(f"{path}, line 3: {value!r}: expected")) as caught:
        read(path)
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    "header, expected",
    [
        ("job_id,user", "a header with submit_time_s"),
        (HEADER.replace("service_gpu_s", "length"), "service_gpu_s, app_key"),
        ("", "a header with job_id"),
    ],
)
def test_a_header_that_lacks_something_is_explained(tmp_path, header, expected):
    with pytest.raises(TraceError, match="line 1") as caught:
        read(write(tmp_path, header=header))
    assert expected in caught.value.expected


def test_an_empty_trace_is_a_mistake(tmp_path):
    with pytest.raises(TraceError, match="no jobs"):
        read(write(tmp_path))


def test_a_trace_that_is_not_there_is_a_mistake(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        read(tmp_path / "none.csv")


def test_a_binary_file_is_a_mistake(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="CSV in UTF-8"):
        read(path)


def test_a_table_that_is_missing_is_named(tmp_path):
    path = write(tmp_path, "a,10,ada,1,1,2,bert:12", header=HEADER.replace("service_gpu_s", "app_key"))
    with pytest.raises(TraceError, match=re.escape("apps_fixed_batch.json")):
        read(path)


def test_an_unknown_application_is_named(tmp_path):
    (tmp_path / "apps_fixed_batch.json").write_text('{"bert:12": {}}')
    path = write(tmp_path, "a,10,ada,1,1,2,bert:13", header=HEADER.replace("service_gpu_s", "app_key"))
    with pytest.raises(TraceError, match=r"line 2: 'app_key=bert:13': expected .*bert:12"):
        read(path)


def test_only_applications_can_be_batch_adaptive(tmp_path):
    with pytest.raises(TraceError, match="app_key"):
        read(write(tmp_path, "a,10,ada,1,1,2,50"), adaptive=True)
