import threading

import anyio
import pytest

from edt_launch.service.app.fair_threads import FairThreads
from edt_launch.service.errors import UnavailableError

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Work:
    """Waits until it is let go, and notes who is at work."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun: list[str] = []

    def of(self, user: str) -> str:
        self.begun.append(user)
        self.go_on.wait()
        return user


AT_ONCE = 4


async def test_who_asks_often_keeps_one_thread() -> None:
    apart, work, done = FairThreads(AT_ONCE, 99), Work(), []

    async def upload(user: str) -> None:
        done.append(await apart.run(user, lambda: work.of(user)))

    async with anyio.create_task_group() as group:
        for _ in range(3 * AT_ONCE):
            group.start_soon(upload, "eve")
        for user in ("ann", "bob"):
            group.start_soon(upload, user)
        while len(work.begun) < 3:
            await anyio.sleep(0)
        assert sorted(work.begun) == ["ann", "bob", "eve"]
        work.go_on.set()
    assert sorted(done) == ["ann", "bob", *["eve"] * (3 * AT_ONCE)]


async def test_only_some_requests_of_one_wait() -> None:
    apart, work = FairThreads(AT_ONCE, 2), Work()
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(apart.run, "eve", lambda: work.of("eve"))
        while not work.begun:
            await anyio.sleep(0)
        with pytest.raises(UnavailableError, match="2 requests like this wait already"):
            await apart.run("eve", lambda: None)
        work.go_on.set()
    assert len(work.begun) == 3
