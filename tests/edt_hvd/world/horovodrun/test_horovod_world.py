"""What a worker asks Horovod's elastic driver; what becomes of it is in tests/system."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from edt_hvd import errors
from edt_hvd.world.horovodrun import horovod_world
from edt_hvd.world.horovodrun.horovod_world import LEAST_SECONDS, HorovodWorld
from edt_messages.messages import Assign


class Driver(ThreadingHTTPServer):
    """The HTTP server of Horovod's driver, which answers every question for an assignment alike."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = "0,1,0,1,0,1"
        self.asked: list[str] = []
        self.kept: dict[str, str] = {}
        self.token: str | None = None


class _Handler(BaseHTTPRequestHandler):
    server: Driver

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.server.token in (None, self.headers["Authorization"]):
            return True
        self.send_error(403)
        return False

    def do_GET(self) -> None:
        is_question = self.path.startswith("/rank_and_size/")
        if is_question:
            self.server.asked.append(self.path)
        answer = self.server.answer if is_question else self.server.kept.get(self.path)
        self.send_response(404 if answer is None else 200)
        self.end_headers()
        self.wfile.write((answer or "").encode())

    def do_PUT(self) -> None:
        self.server.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver() as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def environ(port: int, **more: str) -> dict[str, str]:
    return {
        "HOROVOD_ELASTIC": "1",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_HOSTNAME": "node1",
        "HOROVOD_LOCAL_RANK": "2",
        **more,
    }


def test_the_driver_is_asked_for_the_next_assignment(driver: Driver) -> None:
    driver.answer = "3,5,2,4,1,2"
    here = HorovodWorld(environ(driver.server_port))
    here.generation = 6
    assert here._wait_for_assignment(progress=9) == Assign(3, 5, 2, 4, 1, 2, "node1", 7, driver.server_port)
    assert driver.asked == ["/rank_and_size/node1:2"]


def test_the_driver_is_shown_the_token_of_the_job(driver: Driver) -> None:
    driver.token = "Bearer of-the-job"
    here = HorovodWorld(environ(driver.server_port, HOROVOD_RENDEZVOUS_TOKEN="of-the-job"))
    assert here._wait_for_assignment(progress=0) is not None
    with pytest.raises(errors.CoordinatorLostError, match="it answers 403"):
        HorovodWorld(environ(driver.server_port))._wait_for_assignment(progress=0)


def test_changes_count_until_the_driver_is_asked(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(horovod_world.time, "monotonic", lambda: now[0])
    here = HorovodWorld(environ(driver.server_port))
    here.generation = 1
    told: list[int] = []
    here.on_stop = told.append
    assert not here.stop_wanted
    here.on_hosts_updated(17, 1)
    here.on_hosts_updated(17, 1)  # in the same second
    assert here.stop_wanted
    assert told == [2, 2]
    here._wait_for_assignment(progress=0)
    assert not here.stop_wanted
    here.on_hosts_updated(17, 1)  # while the world is being formed
    assert here.stop_wanted


TWO = Assign(0, 2, 0, 1, 0, 2, "node1", generation=1, port=1)
"""What rank 0 of two has been assigned."""


@pytest.fixture
def initialized(monkeypatch: pytest.MonkeyPatch) -> list[Assign]:
    """The assignments with which Horovod was initialized."""
    found: list[Assign] = []
    monkeypatch.setattr("edt_hvd.world.elastic_world._initialize", lambda each: found.append(each) or True)
    return found


def test_a_world_is_not_left_at_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(horovod_world.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("edt_hvd.world.elastic_world._initialize", lambda assignment: True)
    here = HorovodWorld(environ(driver.server_port))
    assert here._form(Assign(0, 1, 0, 1, 0, 1, "node1", 1, driver.server_port))
    here.on_hosts_updated(17, 1)
    assert not here.stop_wanted
    assert here.wanted_generation == 2
    now[0] += LEAST_SECONDS
    assert here.stop_wanted


def test_a_member_that_does_not_come_is_given_up(driver: Driver, initialized: list[Assign]) -> None:
    here = HorovodWorld(environ(driver.server_port))
    here._patience = 0.0
    here.synced()
    assert not here._form(TWO)
    assert initialized == []
    assert driver.kept["/edt.members/0"] == "gone state"


@pytest.mark.parametrize("others, lost", [("here", True), ("here state", False)])
def test_a_state_that_nobody_has_any_more_is_lost(
    others: str, lost: bool, driver: Driver, initialized: list[Assign]
) -> None:
    driver.kept["/edt.members/1"] = "gone state"
    here = HorovodWorld(environ(driver.server_port))
    assert not here._form(TWO)
    driver.kept["/edt.members/1"] = others
    assert here._form(TWO)
    assert here.has_lost_state == lost


def test_the_state_is_saved_by_who_leaves_where_nobody_has_joined(
    driver: Driver, initialized: list[Assign]
) -> None:
    here = HorovodWorld(environ(driver.server_port))
    here._patience = 0.0
    here.synced()
    saved: list[bool] = []
    here.save_state = lambda: saved.append(True)
    here._form(TWO)
    with pytest.raises(SystemExit):
        here._leave()
    assert saved == [True]


@pytest.mark.parametrize("value", ["", "0", "-1", "four"])
def test_settings_that_make_no_sense_are_named(value: str) -> None:
    with pytest.raises(ValueError, match=f"EDT_MAX_NP='{value}': expected the job's largest number"):
        _ = HorovodWorld(environ(1, EDT_MAX_NP=value)).max_size
    with pytest.raises(ValueError, match=f"EDT_JOIN_TIMEOUT='{value}': expected a number of seconds"):
        HorovodWorld(environ(1, EDT_JOIN_TIMEOUT=value))
