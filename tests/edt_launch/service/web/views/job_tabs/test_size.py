from edt_launch.service.explanation import explain
from edt_launch.service.web.views.job_tabs import size
from records import record


def test_shares_are_parts_of_the_largest() -> None:
    path = [["", 4.0], ["ann", 2.0], ["jaaaaaaaa", 1.0]]
    why = {"binding": "share", "share": 1.0, "target": 1, "path": path, "text": "", "change": ""}
    nodes = size.size(explain(record(why=why, reason=""))).path
    assert [(node.name, node.share, node.percent) for node in nodes] == [
        ("everybody", "4", 100.0),
        ("ann", "2", 50.0),
        ("jaaaaaaaa", "1", 25.0),
    ]
