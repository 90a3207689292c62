import gzip
import threading

from edt_launch.service.bus import Bus, Topic
from edt_launch.service.shared_answers import MOST, STALE, SharedAnswers


class Now:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_answer_is_made_again_only_when_something_has_changed_or_it_is_old() -> None:
    bus, now = Bus(), Now()
    shared, made = SharedAnswers(bus, now), []

    def make() -> bytes:
        made.append(1)
        return b"%d" % len(made)

    def ask(key: str = "a") -> bytes:
        return gzip.decompress(shared.get(key, make))

    assert [ask(), ask()] == [b"1", b"1"]
    bus.notify(Topic.SEARCHES)
    assert ask() == b"1"
    bus.notify(Topic.JOBS)
    assert ask() == b"2"
    bus.notify(Topic.HOSTS)
    assert ask() == b"3"
    now.now += STALE
    assert ask() == b"4"
    assert ask("b") == b"5"
    now.now -= 2 * STALE  # the clock was set
    assert ask() == b"6"


def test_who_asks_meanwhile_waits_for_the_same() -> None:
    shared, go_on, made = SharedAnswers(Bus(), Now()), threading.Event(), []

    def make() -> bytes:
        made.append(1)
        go_on.wait()
        return b"x"

    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(shared.get("a", make))) for _ in range(5)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(found)) == 1
    assert len(found) == 5


def test_an_answer_that_cannot_be_made_is_tried_again() -> None:
    shared = SharedAnswers(Bus(), Now())
    for _ in range(2):
        try:
            shared.get("a", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        except ZeroDivisionError:
            continue
    assert gzip.decompress(shared.get("a", lambda: b"x")) == b"x"


def test_so_many_are_kept() -> None:
    shared = SharedAnswers(Bus(), Now())
    for key in range(MOST + 5):
        shared.get(key, lambda: b"")
    assert len(shared._kept) == MOST
