"""The service is killed with kill -9, again and again, while clients ask for all kinds of things.

What it has acknowledged stays so, jobs never notice, and nothing is done twice.
"""

import gc
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from attacked import journals
from attacked.service import Answer, Service

from worlds import empty_database

KILLS = 10

SUBMITTED = 30
"""Short jobs that the clients submit at most."""

PAUSE = 0.1
"""Seconds between two requests of a client."""

DONE = (requests.codes.ok, requests.codes.created, requests.codes.no_content, requests.codes.conflict)
"""It is done, or it was too late for it."""


class Load:
    """Clients of three users, until they are told to stop. What has been acknowledged is written down."""

    def __init__(self, service: Service, long: tuple[str, ...], users: dict[str, str], seed: int) -> None:
        self.service = service
        self.long = long
        self.users = users
        self.seed = seed
        self.stop = threading.Event()
        self.submitted: dict[str, str] = {}
        """Ids of the short jobs, by name, that have been acknowledged."""
        self.given_up: set[str] = set()
        """Names of those that were asked for, and not acknowledged."""
        self.stopped: set[str] = set()
        """Ids of those whose stop has been acknowledged."""
        self.asked_to_stop: set[str] = set()
        self.most: dict[str, set[int]] = {}
        """`max` of each long job: what was acknowledged last, and what was asked for since."""
        self.tokens: dict[str, str] = {}
        """Ids of the tokens that have been acknowledged and that nobody has asked to revoke."""
        self.revoked: set[str] = set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the clients; raises what one of them has met."""
        clients = (self.submit, self.end, self.resize, self.change_tokens)
        with ThreadPoolExecutor(len(clients)) as pool:
            running = [
                pool.submit(self._repeat, client, random.Random(self.seed + number))
                for number, client in enumerate(clients)
            ]
            try:
                yield
            finally:
                self.stop.set()
            for each in running:
                each.result()
            gc.collect()  # what is left of broken connections, as long as the test allows it

    def wait_for_a_job(self) -> None:
        """Wait until one more job is acknowledged, so that there is load on a slow machine, too."""
        before = len(self.submitted)
        while len(self.submitted) == before < SUBMITTED and not self.stop.is_set():
            time.sleep(PAUSE)

    def _repeat(self, client: Callable[[random.Random], None], chance: random.Random) -> None:
        try:
            while not self.stop.is_set():
                client(chance)
                time.sleep(PAUSE)
        except BaseException:
            self.stop.set()  # nobody waits for this client
            raise

    def _ask(self, ask: Callable[[], Answer]) -> Any:
        """The answer's content; None if it was too late, or the service was killed on the way or away."""
        try:
            answer = ask()
        except (requests.ConnectionError, FileNotFoundError, requests.exceptions.ChunkedEncodingError):
            return None
        assert answer.status_code in DONE, answer.text
        if answer.status_code == requests.codes.conflict:
            return None
        return answer.json() if answer.content else {}

    def submit(self, chance: random.Random) -> None:
        """Submit a job, with its code; half of the clients try again until they are answered."""
        if len(self.submitted) >= SUBMITTED:
            return
        name = f"s{chance.getrandbits(64):016x}"
        token = self.users[chance.choice(("ann", "bob", "eve"))]
        fields: dict[str, Any] = {"name": name, "token": token, "key": name, "priority": 1}
        self.given_up.add(name)
        while not self.stop.is_set():
            if found := self._ask(lambda: self.service.post_job("brief.py", **fields)):
                self.submitted[name] = found["id"]
                self.given_up.remove(name)
                return
            if chance.random() < 0.5:
                return

    def end(self, chance: random.Random) -> None:
        """Stop one of the short jobs, of which most may run to their end."""
        left = sorted(set(self.submitted.values()) - self.stopped)
        if left and chance.random() < 0.1:
            job = chance.choice(left)
            self.asked_to_stop.add(job)
            if self._ask(lambda: self.service.ask("POST", f"/jobs/{job}/stop")) is not None:
                self.stopped.add(job)

    def resize(self, chance: random.Random) -> None:
        """Change the limits of a long job, or what its owner is to have."""
        job, most = chance.choice(self.long), chance.randint(1, 4)
        asked = self.most.setdefault(job, set())
        asked.add(most)
        if self._ask(lambda: self.service.ask("PATCH", f"/jobs/{job}", json={"max": most})) is not None:
            self.most[job] = {most}
        weight = {"weight": float(chance.randint(1, 3))}
        self._ask(lambda: self.service.ask("PUT", "/shares/ann", json=weight))

    def change_tokens(self, chance: random.Random) -> None:
        """Make a token; or revoke one, which leaves the number of them small."""
        if len(self.tokens) < 10:
            if found := self._ask(lambda: self.service.ask("POST", "/tokens", json={"name": "t"})):
                self.tokens[found["token"]] = found["id"]
            return
        token = chance.choice(sorted(self.tokens))
        id_ = self.tokens.pop(token)
        if self._ask(lambda: self.service.ask("DELETE", f"/tokens/{id_}")) is not None:
            self.revoked.add(token)


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """On each kind of database; on one of them over TLS."""
    words = ("--database", empty_database(request, tmp_path)) if request.param == "postgresql" else ()
    one = Service(tmp_path / "a pool's folder", *words, *(("--tls-self-signed",) if words else ()))
    yield one
    print(one.report())
    one.close()


# Where a connection is reset just before its handshake, the ssl module leaves the socket open.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.full
@pytest.mark.timeout(1200)
def test_kills_under_load(service: Service) -> None:
    chance = random.Random(4)
    service.start()
    service.ready()
    users = {name: service.user(name) for name in ("ann", "bob", "eve")}
    long = tuple(
        service.submit("pooled.py", "--steps", 100_000, token=users[name], min=1, max=4)
        for name in ("ann", "bob")
    )
    service.until_training(*long)
    load = Load(service, long, users, seed=5)
    with load.running():
        for _ in range(KILLS):
            if chance.random() < 0.8:
                service.ready()
                load.wait_for_a_job()
            time.sleep(chance.uniform(0.0, 1.5))
            service.kill()
            service.start()
        service.ready()

    def short() -> list[dict[str, Any]]:
        return [job for job in service.jobs() if job["id"] not in long]

    service.until(lambda: all(job["state"] in ("succeeded", "stopped") for job in short()))
    most = {job: service.job(job)["max"] for job in long}
    assert {job for job in long if most[job] in load.most[job]} == set(long), (most, load.most)
    for job in long:
        service.until_training(job)
        service.finish(job)
    service.until(lambda: all(service.job(job)["state"] == "succeeded" for job in long))

    # What was acknowledged is there once, what was not at most once.
    jobs = short()
    names = Counter(job["name"] for job in jobs)
    assert set(names.values()) == {1}
    assert set(load.submitted) <= set(names) <= set(load.submitted) | load.given_up
    assert {name: id_ for name, id_ in load.submitted.items() if id_ not in {job["id"] for job in jobs}} == {}
    assert sorted(folder.name for folder in service.home.jobs.glob("j*")) == sorted(
        [*long, *(job["id"] for job in jobs)]
    )
    assert list(service.home.incoming.iterdir()) == []
    # Each of them has run once, or not at all if it was stopped.
    began = Counter(use.job for use in journals.uses(service.out))
    for job in jobs:
        assert began[job["id"]] <= 1, job
        assert job["state"] == "stopped" or began[job["id"]] == 1, job
        assert job["state"] == "succeeded" or job["id"] in load.asked_to_stop, job
    assert journals.overlaps(service.out) == []
    for job in long:
        events = Counter(event["event"] for event in service.events(job))
        assert events["begun"] == 1
        assert not {"failed", "restarting", "waiting"} & set(events)
        done = service.steps(job)
        assert done == list(range(1, len(done) + 1))
        assert service.job(job)["step"] == len(done)
    for tokens, status in ((load.tokens, requests.codes.ok), (load.revoked, requests.codes.unauthorized)):
        assert {service.ask("GET", "/", token=token).status_code for token in tokens} == {status}
    assert len(load.submitted) > KILLS / 2, "there was no load"
    assert load.stopped
    assert load.revoked
    assert service.end() == 0
