"""The service is killed with kill -9, again and again; its jobs never notice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_launch.service.bus import Bus
from edt_launch.service.database.records import ShareRecord
from edt_launch.service.states import State
from pool_harness import Pool

KILLS = 20


class Service:
    """`edt serve` in a process of its own, on the folder of a pool."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.log = pool.settings.home / "serve.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        home = ("--home", str(self.pool.settings.home))
        words = ("serve", *home, "--slots", "4", "--port", "0", "--interval", "0.3", "--coalesce", "0.1")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "edt_launch.cli", *words, "--protected", "0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def is_serving(self) -> bool:
        return self.pool.settings.paths.server.exists()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    pool = Pool(tmp_path / "a pool's folder")
    pool.bus = Bus()  # the service's own is in another process, which looks at the database now and then
    one = Service(pool)
    yield one
    one.kill()
    print(pool.report())
    print(one.log.read_text()[-5000:])
    pool.close()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_twenty_kills(service: Service) -> None:
    pool, chance = service.pool, random.Random(4)
    service.start()
    jobs = [
        pool.submit("ann", 1, 4, "--steps", 100_000),
        pool.submit("bob", 1, 4, "--steps", 100_000),
    ]
    pool.until_sizes(2, 2)
    for count in range(KILLS):
        # Something to do for the loop: an allocation that changes, jobs that come and go.
        pool.store.shares.put(ShareRecord("ann", weight=3.0 if count % 2 else 1.0))
        if count % 7 == 3:
            jobs.append(pool.submit("eve", 1, 1, "--steps", 20, priority=1))
        pool.until(service.is_serving)
        time.sleep(chance.uniform(0.0, 1.5))
        service.kill()
        pool.settings.paths.server.unlink()
        service.start()
    for job in jobs[2:]:
        pool.until(lambda job=job: pool.job(job).state is State.SUCCEEDED)
    for job in jobs[:2]:
        pool.until_training(job)
        (pool.out / f"finish.{job}").touch()
    pool.until(lambda: all(pool.job(job).state is State.SUCCEEDED for job in jobs))

    assert pool.overlaps() == []
    for job in jobs:
        events = pool.events(job)
        assert [event["event"] for event in events].count("begun") == 1
        assert not [event for event in events if event["event"] in ("failed", "restarting", "waiting")]
        done = pool.steps(job)
        assert done == list(range(1, len(done) + 1))
        assert pool.job(job).step == len(done)
    assert [len(pool.steps(job)) for job in jobs[2:]] == [20] * len(jobs[2:])
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGTERM)
    assert service.process.wait() == 0
