import asyncio
import threading
from collections.abc import Callable

from edt_launch.service.bus import Bus, Topic
from edt_launch.service.shared_answers import STALE, SharedAnswers


class Now:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def counting() -> Callable[[], int]:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    return make


def test_an_answer_is_made_again_only_when_something_has_changed_or_it_is_old() -> None:
    async def ask_again_and_again() -> None:
        bus, now, make = Bus(), Now(), counting()
        shared = SharedAnswers(bus, now)
        assert [await shared.get("a", make), await shared.get("a", make)] == [1, 1]
        bus.notify(Topic.SEARCHES, Topic.PROGRESS)
        assert await shared.get("a", make) == 1
        bus.notify(Topic.JOBS)
        assert await shared.get("a", make) == 2
        bus.notify(Topic.HOSTS)
        assert await shared.get("a", make) == 3
        now.now += STALE
        assert await shared.get("a", make) == 4
        assert await shared.get("b", make) == 5
        now.now -= 2 * STALE  # the clock was set
        assert await shared.get("b", make) == 6

    asyncio.run(ask_again_and_again())


def test_who_asks_meanwhile_waits_for_the_same_without_a_thread() -> None:
    async def ask_at_once() -> list[int]:
        shared, go_on, count = SharedAnswers(Bus(), Now()), threading.Event(), counting()

        def make() -> int:
            go_on.wait()
            return count()

        tasks = [
            asyncio.create_task(shared.get("a", make)) for _ in range(100)
        ]  # more than there are threads
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(ask_at_once()) == [1] * 100
