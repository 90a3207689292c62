from typing import Any

from edt_launch.core.event_codec import read_line
from edt_launch.service.api import views
from edt_launch.service.database.records import JobRecord
from edt_launch.service.explanation import explain
from edt_launch.service.web.views import job_tabs
from edt_launch.service.web.views.lives import lives


def record(**fields: Any) -> JobRecord:
    return JobRecord("jaaaaaaaa", "ann", ("python", "train me.py"), 1, 4, 5.0, **fields)


def test_events_are_told_in_words_and_what_is_none_is_left_out() -> None:
    lines = [
        b'{"event": "world", "time": 1.0, "generation": 1, "size": 2}',
        b"nonsense",
        b'{"event": "progress", "time": 2.0}',
        b'{"event": "allocation_rejected", "time": 3.0, "reason": "half a line"}',
    ]
    found = [event for event in map(read_line, lines) if event is not None]
    assert [(event.time, event.text) for event in job_tabs.happened(found, 9)] == [
        (3.0, "allocation not followed: half a line"),
        (1.0, "2 workers training"),
    ]
    assert len(job_tabs.happened(found, 1)) == 1


def test_shares_are_parts_of_the_largest() -> None:
    path = [["", 4.0], ["ann", 2.0], ["jaaaaaaaa", 1.0]]
    why = {"binding": "share", "share": 1.0, "target": 1, "path": path, "text": "", "change": ""}
    nodes = job_tabs.size(explain(record(why=why, reason=""))).path
    assert [(node.name, node.share, node.percent) for node in nodes] == [
        ("everybody", "4", 100.0),
        ("ann", "2", 50.0),
        ("jaaaaaaaa", "1", 25.0),
    ]


def test_phases_follow_each_other_in_parts_of_the_longest_resize() -> None:
    pauses = [
        {
            "from": 1,
            "to": 2,
            "start": 1.0,
            "end": 2.0,
            "reason": "",
            "phases": {"drain": 1.0, "transfer": 3.0},
        },
        {"from": 2, "to": 4, "start": 5.0, "end": 5.5, "reason": "", "phases": {"detect": 2.0}},
        {"from": None, "to": 4, "start": 8.0, "end": 9.0, "reason": "started again", "phases": {}},
    ]
    latest, first = job_tabs.events(views.job(record()), pauses, lives([], None), []).resizes
    assert [(one.left, one.width, one.seconds) for one in first.phases] == [
        (0.0, 25.0, "1.00 s"),
        (25.0, 75.0, "3.00 s"),
    ]
    assert (latest.size, latest.pause, latest.phases[0].width) == ("2→4", "0.50 s", 50.0)


def test_a_log_of_a_rank_is_followed_until_the_job_ends() -> None:
    live = views.job(record())
    shown = job_tabs.logs(live, 3, [b"[0] hello"], None, None, "", None)
    assert shown.follow == "/api/v1/jobs/jaaaaaaaa/logs?rank=3&tail=200&follow=1"
    assert shown.whole == "/api/v1/jobs/jaaaaaaaa/logs?rank=3"
    assert shown.ranks == range(4)
    assert job_tabs.logs(live | {"state": "failed"}, None, [], None, None, "", None).follow is None
    around = job_tabs.logs(live, None, [], 0, (0, 9), "a b", {"hits": [], "next": 7}, "error")
    assert (around.follow, around.earlier, around.later) == (None, None, "/jobs/jaaaaaaaa?tab=logs&at=9")
    assert around.more == "/jobs/jaaaaaaaa?tab=logs&text=a+b&level=error&after=7"


def test_files_are_grouped_by_folders_and_named_in_addresses() -> None:
    made = {"files": [{"name": "work/a b/x?.pt", "size": 1500, "time": 1.0}], "complete": True}
    (folder,) = job_tabs.results("jaaaaaaaa", made, [], {}).folders
    assert folder.name == "work/a b"
    assert folder.archive == "/api/v1/jobs/jaaaaaaaa/results?name=work%2Fa+b"
    (file,) = folder.files
    assert (file.name, file.size) == ("x?.pt", "1.5 kB")
    assert file.address == "/api/v1/jobs/jaaaaaaaa/files/work/a%20b/x%3F.pt"


def test_the_model_comes_before_logs() -> None:
    names = ("log/a.log", "log/train/b", "model/train/c.pt", "modelled/d", "work/e")
    made = {"files": [{"name": name, "size": 1, "time": 1.0} for name in names], "complete": True}
    shown = [folder.name for folder in job_tabs.results("jaaaaaaaa", made, [], {}).folders]
    assert shown == ["model/train", "log", "log/train", "modelled", "work"]


def test_what_is_called_like_a_secret_is_left_out() -> None:
    job = views.job(record(environment={"WANDB_API_KEY": "abc", "EPOCHS": "3"}))
    assert job_tabs.definition(job, {}).environment == [("EPOCHS", "3"), ("WANDB_API_KEY", "…")]
    assert job_tabs.definition(job, {"a": 1, "b": 2}, most=1).files_left_out == 1
