from edt_launch.service.files.log_query import LogQuery
from edt_launch.service.jobs import views
from edt_launch.service.jobs.pages.views.job_tabs.logs import Excerpt, logs
from records import record

JOB = views.job(record())


def test_each_line_has_a_page_that_shows_it_among_its_neighbours() -> None:
    shown = logs(JOB, LogQuery(rank=3), Excerpt(40, ["ä".encode(), b"", b"c"], at=43), None)
    assert [(line.address, line.is_asked_for) for line in shown.lines] == [
        ("/jobs/jaaaaaaaa?tab=logs&rank=3&at=40", False),
        ("/jobs/jaaaaaaaa?tab=logs&rank=3&at=43", True),
        ("/jobs/jaaaaaaaa?tab=logs&rank=3&at=44", False),
    ]
    assert shown.place == "/jobs/jaaaaaaaa?tab=logs&rank=3&at="
    assert shown.follow is None
    assert (shown.earlier, shown.later) == (f"{shown.place}0", f"{shown.place}0")
    first = logs(JOB, LogQuery(), Excerpt(0, [b"a"], at=0, later=9), None)
    assert (first.earlier, first.later) == (None, "/jobs/jaaaaaaaa?tab=logs&at=9")


def test_a_search_goes_on_with_all_that_was_asked() -> None:
    wanted = LogQuery("a b", level="error", since=3600.0, until=7200.0)
    shown = logs(JOB, wanted, Excerpt(0, []), {"hits": [{"offset": 5, "text": "a b"}], "next": 7})
    assert (shown.since, shown.until) == ("1970-01-01T01:00:00", "1970-01-01T02:00:00")
    times = "since=1970-01-01T01%3A00%3A00&until=1970-01-01T02%3A00%3A00"
    assert shown.more == f"/jobs/jaaaaaaaa?tab=logs&text=a+b&level=error&{times}&after=7"
    assert shown.hits is not None
    assert [hit.address for hit in shown.hits] == ["/jobs/jaaaaaaaa?tab=logs&at=5"]
