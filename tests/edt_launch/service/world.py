"""A service without sockets and threads, for tests: a store, a clock that stands still, users, requests."""

import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.application import create_app
from edt_launch.service.app.context import Context
from edt_launch.service.app.first_start import make_home
from edt_launch.service.app.home import JobDir
from edt_launch.service.app.settings import Settings
from edt_launch.service.bus import Bus
from edt_launch.service.cluster.records import HostRecord, ShareRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.states import State

NOW = 1_000_000.0


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


class World:
    """A service, and three who use it: `admin` (an administrator), `ann` and `bob`."""

    def __init__(self, folder: Path, store: Store, **settings: Any) -> None:
        self.settings = Settings(home=folder, **{"allowed_hosts": "testserver", **settings})
        make_home(self.settings.paths)
        self.store = store
        self.clock = Clock()
        self.bus = Bus()
        self.context = Context(self.settings, store, self.bus, self.clock, "http://edt.test")
        self.app = create_app(self.context)
        for name in ("admin", "ann", "bob"):
            store.accounts.add_user(UserRecord(name, name == "admin", NOW))
            store.shares.add_missing(ShareRecord(name))
        self.tokens = {
            name: tokens.issue(store.accounts, name, "test", NOW)[0] for name in ("admin", "ann", "bob")
        }
        store.hosts.put([HostRecord("node1", ("0", "1", "2", "3"), source="test")])
        self.anybody = TestClient(self.app, base_url="http://edt.test")
        self.admin, self.ann, self.bob = (self.client(name) for name in ("admin", "ann", "bob"))

    def client(self, name: str) -> TestClient:
        """Of the user with that name, or of whoever has that token."""
        headers = {"Authorization": f"Bearer {self.tokens.get(name, name)}"}
        return TestClient(self.app, base_url="http://edt.test/api/v1", headers=headers)

    def submit(self, client: TestClient, *, key: str | None = None, **spec: Any) -> dict[str, Any]:
        answer = post_job(client, key=key, **spec)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def files(self, job: str) -> JobDir:
        return self.settings.paths.job(job)

    def go(self, job: str, *states: State) -> None:
        for state in states:
            elastic = {"can_save": True} if state is State.RUNNING else {}
            self.store.jobs.move(job, state, "for the test", self.clock.now, **elastic)


def post_job(
    client: TestClient, *, key: str | None = None, code: bytes | None = None, query: str = "", **spec: Any
) -> Any:
    files = {"code": ("code.tar.gz", tar({"train.py": b"print()"}) if code is None else code)}
    headers = {} if key is None else {"Idempotency-Key": key}
    content = {"command": ["python", "train.py"], **spec}
    return client.post(f"/jobs{query}", data={"spec": json.dumps(content)}, files=files, headers=headers)


def tar(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """An archive of files."""
    return tar_of([(member(name, size=len(content)), content) for name, content in files.items()], mode)


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field_, value in fields.items():
        setattr(info, field_, value)
    return info


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
