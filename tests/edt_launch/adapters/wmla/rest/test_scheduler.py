import pytest

from asking import Asking, submitted
from edt_launch.adapters.wmla.rest import applications
from played import Player


def test_applications_can_be_sorted_and_cut(asking: Asking, player: Player) -> None:
    client = asking.modern()
    names = [submitted(client)["id"] for _ in range(3)]
    player.start(names[1])
    path = "/scheduler/engine/applications"
    assert [one["id"] for one in client.get(f"{path}?sort=id&start=1&length=1").json()] == names[1:2]
    assert [one["id"] for one in client.get(f"{path}?state=running").json()] == names[1:2]
    assert [one["id"] for one in client.get(f"{path}?sort=-used_gpu&length=1").json()] == names[1:2]
    assert client.get(f"{path}?sort=nothing").status_code == 400
    assert len(client.get("/scheduler/applications").json()) == 3


def test_pages_lead_through_all_applications(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "MOST", 2)
    client = asking.modern()
    names = [submitted(client)["id"] for _ in range(5)]
    path = "/scheduler/engine/applications"
    for more in ("", "&state=submitted", "&sort=-id"):
        pages = [client.get(f"{path}?start={start}&length=2{more}").json() for start in (0, 2, 4)]
        assert [[one["id"] for one in page] for page in pages] == [names[4:2:-1], names[2:0:-1], names[:1]]
    assert [one["id"] for one in client.get(f"{path}?length=9").json()] == names[4:2:-1]
    assert [one["id"] for one in client.get("/scheduler/applications").json()] == names[4:2:-1]


@pytest.mark.parametrize(
    "path",
    [
        *("/driver/logs/passwd", "/driver/logs/stdout?lastlines=-1", "/driver/logs/stdout?lastlines=x"),
        *("/executor/0/logs/stdout", "/executor/x/logs/stdout", "/executor/1/logs/launcherlog"),
        *("/executor/99999999999999999999/logs/stdout", "/nothing"),
    ],
)
def test_nonsense_is_refused_in_a_line_of_text(asking: Asking, path: str) -> None:
    exec_id = submitted(asking.modern())["id"]
    answer = asking.modern().get(f"/scheduler/applications/{exec_id}{path}")
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith(f"Error {answer.status_code}: ")


def test_what_has_printed_nothing_yet_is_empty(asking: Asking) -> None:
    exec_id = submitted(asking.modern())["id"]
    for path in ("driver/logs/stdout", "driver/logs/launcherlog", "executor/2/logs/stderr"):
        answer = asking.modern().get(f"/scheduler/applications/{exec_id}/{path}")
        assert (answer.status_code, answer.text) == (200, "")


def test_an_executor_that_there_cannot_be_is_told_from_a_silent_one(asking: Asking, player: Player) -> None:
    client = asking.modern()
    exec_id = submitted(client)["id"]
    place = f"/scheduler/applications/{exec_id}/executor"
    unknown = client.get(f"{place}/7/logs/stdout")
    assert (unknown.status_code, unknown.text) == (400, f"Error 400: Executor 7 of {exec_id} not found.\n")
    player.start(exec_id, size=1)
    assert client.get(f"{place}/2/logs/stdout").text == ""
    player.finish(exec_id)
    assert client.get(f"{place}/1/logs/stdout").text.startswith("executor 1")
    assert client.get(f"{place}/2/logs/stdout").status_code == 400
