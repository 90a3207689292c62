import pytest

from asking import Asking, submitted
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
    for path in ("driver/logs/stdout", "driver/logs/launcherlog", "executor/7/logs/stderr"):
        answer = asking.modern().get(f"/scheduler/applications/{exec_id}/{path}")
        assert (answer.status_code, answer.text) == (200, "")
