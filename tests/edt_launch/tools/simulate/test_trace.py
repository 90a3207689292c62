import re

import pytest

from edt_launch.core.errors import TraceError
from edt_launch.tools.simulate.trace import read
from small import HEADER


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


@pytest.mark.parametrize(
    "line, value, expected",
    [
        ("a,nan,ada,1,1,2,50", "submit_time_s=nan", "at least 0"),
        ("a,1,ada,1,3,2,50", "gpus_max=2", "at least 3"),
        ("first,1,ada,1,1,2,50", "job_id=first", "a name that no line above has"),
    ],
)
def test_a_bad_line_is_named_with_its_value_and_what_was_expected(tmp_path, line, value, expected):
    path = write(tmp_path, "first,0,ada,1,1,2,50", line)
    with pytest.raises(TraceError, match=re.escape(f"{path}, line 3: {value!r}: expected")) as caught:
        read(path)
    assert expected in caught.value.expected
