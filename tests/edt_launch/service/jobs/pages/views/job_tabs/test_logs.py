import re
from dataclasses import replace

from edt_launch.service.files.log_query import LogQuery
from edt_launch.service.jobs import answers
from edt_launch.service.jobs.pages.views.job_tabs.logs import Excerpt, logs
from records import record

JOB = answers.job(record())


def test_each_line_has_a_page_that_shows_it_among_its_neighbours() -> None:
    lines = ["[3] ä".encode(), b"[2] b", b"[3] ", b"[3]<stdout>:c", b"[33] d"]
    excerpt = replace(Excerpt.of(40, lines, rank=3), at=54)
    shown = logs(JOB, LogQuery(rank=3), excerpt, None)
    assert [[text for text, _ in line.pieces] for line in shown.lines] == [["ä"], [], ["c"]]
    assert [(line.address, line.is_asked_for) for line in shown.lines] == [
        ("/jobs/jaaaaaaaa?tab=logs&rank=3&at=40", False),
        ("/jobs/jaaaaaaaa?tab=logs&rank=3&at=53", True),
        ("/jobs/jaaaaaaaa?tab=logs&rank=3&at=58", False),
    ]
    assert shown.place == "/jobs/jaaaaaaaa?tab=logs&rank=3&at="
    assert shown.follow is None
    assert (shown.earlier, shown.later) == (f"{shown.place}0", f"{shown.place}0")
    assert re.match(shown.begin, "[3] x")
    assert not re.match(shown.begin, "[33] x")
    assert excerpt.end(1).start == 58
    first = logs(JOB, LogQuery(), Excerpt(0, [(0, b"a")], at=0, later=9), None)
    assert (first.earlier, first.later) == (None, "/jobs/jaaaaaaaa?tab=logs&at=9")


def test_a_search_goes_on_with_all_that_was_asked() -> None:
    wanted = LogQuery("a b", level="error", since=3600.0, until=7200.0)
    shown = logs(JOB, wanted, Excerpt(0, []), {"hits": [{"offset": 5, "text": "a b"}], "next": 7})
    times = "since=1970-01-01T01%3A00%3A00&until=1970-01-01T02%3A00%3A00"
    assert shown.more == f"/jobs/jaaaaaaaa?tab=logs&text=a+b&level=error&{times}&after=7"
    assert shown.hits is not None
    assert [hit.address for hit in shown.hits] == ["/jobs/jaaaaaaaa?tab=logs&at=5"]
