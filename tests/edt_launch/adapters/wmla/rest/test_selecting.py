from typing import Any

import pytest

from asking import Asking, submitted
from edt_launch.adapters.wmla import identity
from edt_launch.service.jobs.states import State
from played import Player

ARGS = "--exec-start edtPyTorch --model-dir m --numWorker 2 --appName {}"

PATHS = ("/scheduler/applications", "/scheduler/engine/applications")


@pytest.fixture
def names(asking: Asking, player: Player) -> list[str]:
    """A job that has finished, one that runs, and one of another user and group that waits."""
    client = asking.modern()
    ended, running = (submitted(client, args=ARGS.format(name))["id"] for name in ("first", "second"))
    waiting = submitted(asking.classic("bob"), args=ARGS.format("third"), sigName="dli")["id"]
    for name, size in ((ended, 1), (running, 2)):
        player.start(name, size=size)
    player.finish(ended, State.SUCCEEDED)
    return [ended, running, waiting]


def ids(asking: Asking, path: str, **params: Any) -> list[str]:
    answer = asking.modern("admin").get(path, params=params)
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()]


EVERY = "NEW,SUBMITTED,PENDING_JOB_SCHEDULER,LAUNCHING,RECOVERING,UNKNOWN" + ",WAITING" * 99
SELECTIONS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [2, 1, 0]),
    ({"state": "FINISHED,KILLED,ERROR"}, [0]),
    ({"state": EVERY}, [2]),
    ({"applicationname": "second"}, [1]),
    ({"search": "bob"}, [2]),
    ({"sigId": identity.group_id("edt"), "search": "second"}, [1]),
    ({"sort": "name", "order": "desc"}, [2, 1, 0]),
    ({"start": 1, "length": "1", "color": "red"}, [1]),
]


@pytest.mark.parametrize("path", PATHS)
def test_every_parameter_selects(asking: Asking, names: list[str], path: str) -> None:
    for params, expected in SELECTIONS:
        assert ids(asking, path, **params) == [names[place] for place in expected], params
    mistaken = asking.modern().get(path, params={"sort": "nothing"})
    assert mistaken.text.startswith("Error 400: sort: 'nothing' is no field of an application")
