"""A service in memory that speaks the client's part of /api/v1, records what it was asked, and can break."""

import contextlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

TOKEN, NEW_TOKEN = "edt-secret", "edt-new"
NOW = 1_700_000_000.0


def job(job_id: str, **changes: Any) -> dict[str, Any]:
    """A running job as the service tells it."""
    return {
        "id": job_id, "name": "train", "owner": "ada", "state": "running",
        "reason": "its fair share is 2 of 4", "command": ["python", "train.py"],
        "directory": "", "min": 1, "max": 4, "allowed": None,
        "priority": 0, "weight": 1.0, "size": 2, "target": 2, "share": 2.0,
        "submitted": NOW - 200, "started": NOW - 190,
        "ended": None, "exit_code": None, "failure": None, "step": 430, "total_steps": 1000, "loss": 0.4123,
        "throughput": 13.2, "eta": 43.2, "restarts": 0, "resizes": 3,
        "hosts": [{"host": "node1", "devices": ["0", "1"]}], "urls": {}, "from the future": 1,
    } | changes  # fmt: skip


TWO_JOBS = (
    job("jaaaaaaaa"),
    job(
        "jbbbbbbbb", name="eval", owner="bob", state="queued",
        reason="waits for 3 devices at once: 2 are free",
        size=0, target=0, started=None, step=None, total_steps=None, loss=None, throughput=None, eta=None,
        hosts=[], min=3, share=0.0, submitted=NOW - 100,
    ),
)  # fmt: skip

CLUSTER = {
    "hosts": [
        {
            "name": "node1", "state": "up", "source": "machine",
            "devices": [{"name": str(i), "job": "jaaaaaaaa" if i < 2 else None} for i in range(4)],
        },
    ],
    "total": 4, "used": 2, "free": 2,
}  # fmt: skip

TRIAL = {
    "number": 0, "state": "succeeded", "reason": "", "parameters": {"rate": 0.0031, "units": 32}, "budget": 0,
    "metric": 0.97, "job": "jaaaaaaaa", "started": NOW, "ended": NOW,
}  # fmt: skip
SEARCH = {
    "id": "haaaaaaaa", "name": "find-rate", "owner": "ada", "state": "running", "wanted": "run", "reason": "",
    "algorithm": "random", "metric": "accuracy", "objective": "maximize", "total": 4,
    "counts": {"succeeded": 2, "failed": 1, "queued": 1}, "created": NOW - 100, "started": NOW, "ended": None,
    "best": TRIAL | {"number": 1, "metric": 0.98}, "spec": {}, "job": {},
    "trials": [
        TRIAL, TRIAL | {"number": 1, "metric": 0.98},
        TRIAL | {"number": 2, "state": "queued", "metric": None},
        TRIAL | {"number": 3, "state": "failed", "metric": None, "reason": "exit code 3"},
    ],
}  # fmt: skip

SHARE: dict[str, Any] = {
    "name": "", "parent": None, "weight": 1.0, "guarantee": 0, "limit": None, "lends": True, "policy": "fair",
    "half_life": 86400.0, "budget": None, "used": 0.0,
}  # fmt: skip
SHARES = {
    "shares": [
        SHARE,
        SHARE | {"name": "vision", "parent": "", "weight": 2.0, "guarantee": 2, "limit": 8.0},
        SHARE | {"name": "ada", "parent": "vision"},
        SHARE
        | {"name": "bob", "parent": "", "policy": "fifo", "half_life": 3600.0, "budget": 40.0, "used": 12.5},
    ]
}


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def parts(self) -> dict[str, bytes]:
        """The parts of a multipart body, by name."""
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + self.body)
        return {
            str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)  # type: ignore[misc]
            for part in message.iter_parts()  # type: ignore[attr-defined]
        }

    def files(self) -> dict[str, bytes | None]:
        """The archive of the code: contents of files, None for folders and links."""
        with tarfile.open(fileobj=io.BytesIO(self.parts()["code"])) as archive:
            return {
                member.name: archive.extractfile(member).read() if member.isreg() else None  # type: ignore[union-attr]
                for member in archive
            }


@dataclass
class ProblemError(Exception):
    """An answer that is a problem."""

    status: int
    detail: str
    next: str = ""


@dataclass
class FakeService:
    """What the service knows; tests change it as they like.

    Attributes:
        old: ids of jobs that ended long ago.
    """

    jobs: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {one["id"]: dict(one) for one in TWO_JOBS}
    )
    logs: dict[str, list[str]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    broken: list[Callable[["Handler"], None]] = field(default_factory=list)
    is_admin: bool = True
    old: set[str] = field(default_factory=set)
    url: str = ""

    def answer(self, asked: Asked) -> Any:
        """The answer to a request; text and lists of text are sent as they are."""
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in (TOKEN, NEW_TOKEN):
            raise ProblemError(401, "the token is unknown", "set EDT_TOKEN")
        for method, pattern, answer in ROUTES:
            found = re.fullmatch(pattern, asked.path)
            if found and method == asked.method:
                if isinstance(answer, str):
                    return getattr(self, answer)(asked, *map(unquote, found.groups()))
                return answer
        raise ProblemError(404, f"nothing is at {asked.path}")

    def about(self, asked: Asked) -> Any:
        return {"version": "0.1.0", "user": "ada", "is_admin": self.is_admin}

    def list_jobs(self, asked: Asked) -> Any:
        wanted = [
            one
            for one in self.jobs.values()
            if (asked.query.get("all") or one["id"] not in self.old)
            and asked.query.get("state", one["state"]) == one["state"]
            and asked.query.get("owner", one["owner"]) == one["owner"]
        ]
        return {"jobs": wanted, "next": None}

    def submit(self, asked: Asked) -> Any:
        new = job("jcccccccc", state="queued", size=0) | json.loads(asked.parts()["spec"])
        if asked.query.get("dry_run"):
            own = {"job": None, "owner": "ada", "name": new["name"], "from": 0, "to": 2}
            other = {"job": "jaaaaaaaa", "owner": "ada", "name": "train", "from": 4, "to": 2}
            changes = [own | {"reason": "its fair share"}, other | {"reason": "gives way"}]
            return {"changes": changes, "job": new}
        self.jobs[new["id"]] = new
        return new

    def one_job(self, asked: Asked, job_id: str) -> Any:
        if job_id not in self.jobs:
            raise ProblemError(404, f"there is no job {job_id}")
        return self.jobs[job_id]

    def change(self, asked: Asked, job_id: str) -> Any:
        self.one_job(asked, job_id).update(asked.json)
        return self.jobs[job_id]

    def wish(self, asked: Asked, job_id: str, wish: str) -> Any:
        state = {"stop": "stopping", "pause": "pausing"}[wish]
        return self.one_job(asked, job_id) | {"state": state, "reason": None}

    def read_logs(self, asked: Asked, job_id: str) -> Any:
        lines = self.logs.get(job_id, [])
        if (rank := asked.query.get("rank")) is not None:
            lines = [line.split(" ", 1)[1] for line in lines if line.startswith(f"[{rank}] ")]
        tail = asked.query.get("tail")
        return lines if tail is None else lines[len(lines) - int(tail) :]

    def search_logs(self, asked: Asked, job_id: str) -> Any:
        """One line an answer, so that whoever wants all of them has to ask on."""
        lines, first = self.logs.get(job_id, []), int(asked.query.get("after", 0))
        found = [at for at, line in enumerate(lines) if asked.query.get("text", "") in line and at >= first]
        hits = [{"offset": at, "text": lines[at]} for at in found[:1]]
        return {"hits": hits, "next": found[0] + 1 if found else None}

    def files(self, asked: Asked, job_id: str) -> Any:
        return {"files": [{"name": name, "size": 1234, "time": NOW} for name in self.made], "complete": True}

    def checkpoint(self, asked: Asked, job_id: str, name: str) -> Any:
        if name not in ("step-10", "step-20"):
            raise ProblemError(404, f"{job_id} has no checkpoint {name!r}")
        return b"\x1f\x8b " + name.encode()

    def search(self, asked: Asked, name: str, wish: str = "") -> Any:
        if name != "find-rate":
            raise ProblemError(404, f"there is no search {name!r}", "edt search ls")
        return SEARCH

    def drain(self, asked: Asked, name: str, wish: str) -> Any:
        if not self.is_admin:
            raise ProblemError(403, "only administrators may drain hosts")
        if "dry_run" in asked.query:
            return {"changes": [], "staying": ["jaaaaaaaa has run for 0:12:34 and cannot save its work"]}
        return {"name": name, "state": "draining" if wish == "drain" else "up", "devices": []}

    def set_share(self, asked: Asked, name: str) -> Any:
        if asked.query.get("dry_run"):
            change = {"job": "jaaaaaaaa", "owner": name, "name": "train", "from": 2, "to": 3, "reason": ""}
            return {"changes": [change]}
        return {"name": name} | asked.json if asked.body else None

    def add(self, asked: Asked) -> Any:
        """A user or a token."""
        return {"id": "t2", "token": NEW_TOKEN} | asked.json


WHY = {
    "share": 2.0, "target": 2, "size": 2, "binding": "share", "path": [{"node": "", "share": 4.0}],
    "text": "It has its fair share.", "change": "A finished job would.",
    "lines": ["share: all 4 > vision 2.7 > ada 2", "It has 2 workers, its fair share rounded."],
}  # fmt: skip
METRICS = {
    "time": [1.0, 3.0], "training": [0.0, 1.5], "step": [10, 30], "size": [1, 2],
    "throughput": [None, 10.0], "values": {"loss": [0.5, None], "accuracy": [0.1, 0.25]},
    "names": ["accuracy", "loss"],
}  # fmt: skip
CHECKPOINTS = [
    {"name": f"step-{step}", "step": step, "size": 1234, "time": NOW, "url": ""} for step in (10, 20)
]
USER = {"name": "ada", "is_admin": True, "created": NOW}
TOKEN_RECORD = {"id": "t1", "name": "laptop", "user": "ada", "created": NOW, "expires": None}

ROUTES: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/", "about"),
    ("GET", "/jobs", "list_jobs"),
    ("POST", "/jobs", "submit"),
    ("GET", "/jobs/([^/]+)", "one_job"),
    ("PATCH", "/jobs/([^/]+)", "change"),
    ("POST", "/jobs/([^/]+)/(stop|pause)", "wish"),
    ("GET", "/jobs/([^/]+)/why", WHY),
    ("GET", "/jobs/([^/]+)/logs", "read_logs"),
    ("GET", "/jobs/([^/]+)/logs/search", "search_logs"),
    ("GET", "/jobs/([^/]+)/metrics", METRICS),
    ("GET", "/jobs/([^/]+)/files", "files"),
    ("GET", "/jobs/([^/]+)/results", b"\x1f\x8b results"),
    ("GET", "/jobs/([^/]+)/checkpoints", {"checkpoints": CHECKPOINTS}),
    ("GET", "/jobs/([^/]+)/checkpoints/([^/]+)", "checkpoint"),
    ("GET", "/searches", {"searches": [SEARCH], "next": None}),
    ("POST", "/searches", SEARCH),
    ("GET", "/searches/([^/]+)", "search"),
    ("POST", "/searches/([^/]+)/(stop|restart)", "search"),
    ("POST", "/searches/([^/]+)/run-best", {"id": "jbbbbbbbb"}),
    ("GET", "/cluster", CLUSTER),
    ("GET", "/hosts", {"hosts": CLUSTER["hosts"]}),
    ("POST", "/hosts/([^/]+)/(drain|undrain)", "drain"),
    ("GET", "/shares", SHARES),
    ("PUT", "/shares/([^/]+)", "set_share"),
    ("DELETE", "/shares/([^/]+)", "set_share"),
    ("GET", "/users", {"users": [USER]}),
    ("POST", "/(?:users|tokens)", "add"),
    ("PUT", "/users/([^/]+)/password", None),
    ("POST", "/logon-links", {"path": "/logon?once=edt_once", "expires": NOW + 300}),
    ("GET", "/tokens", {"tokens": [TOKEN_RECORD]}),
    ("DELETE", "/(?:jobs|searches|users|tokens)/[^/]+", None),
)


class Handler(BaseHTTPRequestHandler):
    """Brings requests to the service of its server, and answers back."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, query = parts.path.removeprefix("/api/v1"), dict(parse_qsl(parts.query))
        asked = Asked(self.command, path, query, headers, self._body())
        self.server.service.asked.append(asked)
        if self.server.service.broken:
            self.server.service.broken.pop(0)(self)
            return
        try:
            answer, status, kind = self.server.service.answer(asked), 200, "application/json"
        except ProblemError as problem:
            answer = {"title": "Refused", **vars(problem)}
            status, kind = problem.status, "application/problem+json"
        if asked.path.endswith("/logs") and isinstance(answer, list):
            self.stream(answer)
        elif isinstance(answer, bytes):
            self.reply(status, "application/gzip", answer)
        else:
            self.reply(status, kind, b"" if answer is None else json.dumps(answer).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - their names

    def reply(self, status: int, kind: str, data: bytes) -> None:
        """Answer as a whole."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, lines: list[str], *, is_whole: bool = True) -> None:
        """Answer line by line; without its end if it is not whole."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            data = f"{line}\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        if is_whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a client may have seen enough
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()


class Server(ThreadingHTTPServer):
    """Listens on a free port of this machine."""

    daemon_threads = True

    def __init__(self, service: FakeService) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.service = service
        service.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


def hang_up(handler: Handler) -> None:
    """Break the connection without an answer."""
    handler.close_connection = True
