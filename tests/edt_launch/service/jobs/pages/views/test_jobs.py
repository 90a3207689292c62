from typing import Any

from edt_launch.service.jobs import answers
from edt_launch.service.jobs.pages.views.jobs import Filter, jobs_view
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.schemas import Job


def job(**fields: Any) -> Job:
    return answers.job(JobRecord("jaaaaaaaa", "ann", ("python", "train.py"), 1, 4, 5.0, **fields))


def test_links_keep_the_rest_of_the_filter() -> None:
    wanted = Filter(state="queued", owner="ann", text="a&b", after=7)
    view = jobs_view(wanted, [job()], 3, 0.0, {})
    assert view.next == "/jobs?state=queued&owner=ann&text=a%26b&after=3"
    chosen = {chip.name: chip for chip in view.chips}
    assert chosen["Queued"].is_chosen
    assert chosen["All"].address == "/jobs?state=all&owner=ann&text=a%26b"
    assert chosen["Now"].address == "/jobs?owner=ann&text=a%26b"
    assert view.as_json == "/api/v1/jobs?state=queued&owner=ann&text=a%26b&after=7&newest=1"
    assert jobs_view(Filter(state="all"), [], None, 0.0, {}).as_json == "/api/v1/jobs?all=1&newest=1"
    assert jobs_view(Filter(), [], None, 0.0, {}).next is None
