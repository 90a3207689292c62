"""Requests to WMLA's interfaces of a service in memory."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.testclient import TestClient

from edt_launch.adapters.wmla.rest.authenticator import CONDUCTOR, DEEP_LEARNING
from edt_launch.service.accounts import passwords
from world import World, tar

PASSWORD = "correct horse"
CODE = {"m/main.py": b"print()"}


@cache
def _hashed() -> str:
    return passwords.hash_of(PASSWORD)


@dataclass
class Asking:
    """Clients of each generation, for the users of a world."""

    world: World

    def __post_init__(self) -> None:
        hashed = _hashed()
        for name in ("admin", "ann", "bob"):
            self.world.store.accounts.set_password(name, hashed, 0.0)

    def client(self, base: str = DEEP_LEARNING, **how: Any) -> TestClient:
        return TestClient(self.world.app, base_url=f"http://edt.test{base}", **how)

    def modern(self, name: str = "ann") -> TestClient:
        return self.client(headers={"X-Auth-Token": self.world.tokens[name]})

    def classic(self, name: str = "ann", base: str = DEEP_LEARNING) -> TestClient:
        client = self.client(base)
        client.auth = (name, PASSWORD)
        return client

    def conductor(self, name: str = "ann") -> TestClient:
        return self.classic(name, CONDUCTOR)


def submit(
    client: TestClient,
    args: str = "--exec-start edtPyTorch --model-dir m --numWorker 2",
    code: bytes | None = None,
    **more: Any,
) -> Any:
    """The answer to a submission."""
    upload = ("m.modelDir.tar", tar(CODE) if code is None else code)
    return client.post("/execs", params={"args": args, **more}, files={"file": upload})


def submitted(client: TestClient, **more: Any) -> dict[str, Any]:
    answer = submit(client, **more)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def nothing_is_left(world: World) -> bool:
    """Whether there is no job, no name of one and no file of what was sent."""
    home = world.settings.paths
    with world.store.execs._database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT count(*) FROM execs").scalar()
    files = [path for folder in (home.incoming, home.jobs, home.trash) for path in folder.iterdir()]
    return not rows and not world.store.jobs.page().jobs and not files
