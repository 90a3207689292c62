"""What one user's job, or a stranger, can do to everybody's service, until it is told to stop."""

import io
import json
import random
import select
import socket
import tarfile
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

import requests

from attacked.service import Service


class Event(Protocol):
    """Of threads or of processes."""

    def is_set(self) -> bool:
        """Whether it has come."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it; whether it has come."""


Attack = Callable[[Service, Event], None]

LOGON = "/platform/rest/conductor/v1/auth/logon"


def mallory(service: Service) -> str:
    """The token of a new user."""
    return service.user(f"mallory-{uuid.uuid4().hex[:8]}")


def fill_events(service: Service, stop: Event) -> None:
    """A job writes into its own events.jsonl: progress at 40,000 sizes, and workers that never were."""
    job = service.submit("brief.py", 3600, token=mallory(service))
    service.until(lambda: service.has_begun(job) or stop.is_set())
    events = service.home.job(job).output.events
    progress = [{"event": "progress", "time": 1.0, "step": n, "size": n, "rate": 0.1} for n in range(40_000)]
    started = [
        {
            "event": "started",
            "time": 1.0,
            "worker": n,
            "host": "localhost",
            "slot": n,
            "device": str(n),
            "rank": n,
        }
        for n in range(16_000)
    ]
    lines = "".join(json.dumps(event) + "\n" for event in (*progress, *started))
    while not stop.wait(1.0):
        with events.open("a") as file:
            file.write(lines)
    service.ask("POST", f"/jobs/{job}/stop")


def archive_of_links() -> bytes:
    """100 links, each of whose 800 names is a way down and up again."""
    links = [(f"link{n}", tarfile.SYMTYPE, "d/../" * 800 + "d") for n in range(100)]
    return _archive(("d", tarfile.DIRTYPE, ""), *links)


def archive_of_folders() -> bytes:
    """54,000 folders, 100 within each other."""
    return _archive(
        *((f"c{n}" + "/d" * depth, tarfile.DIRTYPE, "") for n in range(540) for depth in range(100))
    )


def _archive(*members: tuple[str, bytes, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    return buffer.getvalue()


def upload_links(service: Service, stop: Event) -> None:
    """44 uploads at a time, whose links take long to follow."""
    _upload(service, stop, archive_of_links(), 44)


def upload_folders(service: Service, stop: Event) -> None:
    """Four uploads at a time, of more folders than an archive may have."""
    _upload(service, stop, archive_of_folders(), 4)


def _upload(service: Service, stop: Event, archive: bytes, together: int) -> None:
    token = mallory(service)

    def upload() -> None:
        answer = service.post_archive(archive, token=token)
        if answer.status_code not in (413, 422, 503):
            raise AssertionError(f"{answer.status_code}: {answer.text}")

    _together(together, upload, stop)


def hold_connections(service: Service, stop: Event) -> None:
    """400 connections that are always there, with requests that never end, or handshakes over TLS."""
    is_tls = service.server["url"].startswith("https:")
    handshake, head = b"\x16\x03\x01\x02\x00", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    _hold(service, stop, handshake if is_tls else head)


def hold_streams(service: Service, stop: Event) -> None:
    """A user follows the jobs 400 times."""
    head = f"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {mallory(service)}"
    _hold(service, stop, f"{head}\r\n\r\n".encode())


def hold_bodies(service: Service, stop: Event) -> None:
    """A user sends 400 requests at a time whose bodies never end."""
    head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {mallory(service)}"
    kind = "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000"
    _hold(service, stop, f"{head}\r\n{kind}\r\n\r\n--x\r\n".encode())


def _hold(service: Service, stop: Event, request: bytes) -> None:
    """400 connections that are always there and have sent that."""
    parts = urlsplit(service.server["url"])
    held: list[socket.socket] = []
    try:
        while not stop.wait(0.05):
            for connection in select.select(held, [], [], 0)[0]:
                if not _received(connection):
                    held.remove(connection)
                    connection.close()
            while len(held) < 400 and not stop.is_set():
                with suppress(OSError):
                    connection = socket.create_connection(
                        (str(parts.hostname), int(parts.port or 0)), timeout=1
                    )
                    held.append(connection)
                    connection.sendall(request)
    finally:
        for connection in held:
            connection.close()


def _received(connection: socket.socket) -> bytes:
    """What has arrived; nothing if the other side has closed it."""
    with suppress(OSError):
        return connection.recv(2**16)
    return b""


def guess_passwords(service: Service, stop: Event) -> None:
    """90 clients guess the password of somebody who has one."""
    victim = f"victim-{uuid.uuid4().hex[:8]}"
    service.user(victim)
    service.ask(
        "PUT", f"/users/{victim}/password", json={"password": "a long enough password"}
    ).raise_for_status()
    url, chance = service.server["url"], random.Random(1)

    def guess() -> None:
        with suppress(requests.RequestException):
            requests.get(url + LOGON, auth=(victim, f"{chance.getrandbits(64):x}"), timeout=30)

    _together(90, guess, stop)


def fetch_sparse_file(service: Service, stop: Event) -> None:
    """A job makes a file of 4 TiB, of which nothing is there, and its owner fetches it, eight times."""
    token = mallory(service)
    job = service.submit("brief.py", 3600, token=token)
    service.until(lambda: service.has_begun(job) or stop.is_set())
    with (service.home.job(job).output.model / "sparse").open("wb") as file:
        file.truncate(2**42)

    def fetch() -> None:
        answer = service.ask("GET", f"/jobs/{job}/results", token=token, stream=True)
        answer.close()
        if answer.status_code != requests.codes.request_entity_too_large:
            raise AssertionError(f"{answer.status_code}: it has begun to send 4 TiB")

    _together(8, fetch, stop)
    service.ask("POST", f"/jobs/{job}/stop")


def fetch_metrics(service: Service, stop: Event) -> None:
    """A job has written 64 MiB of events, and its owner asks for its metrics 60 times at a time."""
    token = mallory(service)
    job = service.submit("brief.py", 3600, token=token)
    service.until(lambda: service.has_begun(job) or stop.is_set())
    line = json.dumps({"event": "progress", "time": 1.0, "step": 1, "size": 1, "rate": 0.1}) + "\n"
    with service.home.job(job).output.events.open("a") as file:
        file.write(line * (2**26 // len(line)))

    url, headers = f"{service.server['url']}/api/v1/jobs/{job}/metrics", {"Authorization": f"Bearer {token}"}

    def fetch() -> None:
        with suppress(requests.RequestException):  # it takes longer, as others of its owner's come first
            requests.get(url, headers=headers, verify=service.certificate, timeout=5)

    _together(60, fetch, stop)
    service.ask("POST", f"/jobs/{job}/stop")


def exhaust_descriptors(service: Service, stop: Event) -> None:
    """A job opens as many files as it may, and connections to its launcher's socket."""
    job = service.submit("greedy.py", token=mallory(service))
    service.until(lambda: (service.out / f"{job}.greedy").exists() or stop.is_set())
    stop.wait()
    service.ask("POST", f"/jobs/{job}/stop")


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (
        fill_events,
        upload_links,
        upload_folders,
        hold_connections,
        hold_streams,
        hold_bodies,
        guess_passwords,
        fetch_sparse_file,
        fetch_metrics,
        exhaust_descriptors,
    )
}


def _together(count: int, work: Callable[[], None], stop: Event) -> None:
    """Do something again and again, in so many threads; raises what it raises."""

    def repeat() -> None:
        while not stop.is_set():
            work()

    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(repeat) for _ in range(count)]
    for each in running:
        each.result()
