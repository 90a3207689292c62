"""What a user's job, or a stranger, does to a service unnoticed by others: see docs/reference/security.md.

How long answers take meanwhile is measured by benchmarks/attacks.py.
"""

import json
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import requests
from attacked.attacks import ATTACKS, LOGON, mallory
from attacked.service import Service, tar

from bystander import Bystander, served
from harness import PROGRAMS

pytestmark = pytest.mark.full

FILES = 300
"""Descriptors that the service may have where it is to run out of them."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a pool's folder"


@pytest.mark.parametrize(
    "attack, words", [*((name, ()) for name in ATTACKS), ("hold_connections", ("--tls-self-signed",))]
)
def test_others_do_not_notice(attack: str, words: tuple[str, ...], folder: Path) -> None:
    files = FILES if attack == "hold_connections" else None
    with served(Service(folder, *words, files=files)) as service, ThreadPoolExecutor(1) as pool:
        ann, stop = Bystander(service), threading.Event()
        attacking = pool.submit(ATTACKS[attack], service, stop)
        try:
            for size in (2, 1, 3, 1):
                assert not attacking.done(), attacking.result()
                ann.resize(size)
                ann.ask()
        finally:
            stop.set()
        attacking.result()
        ann.finish()
        assert list(service.home.incoming.iterdir()) == []
        assert service.log.stat().st_size < 2**20
        assert service.process is not None
        assert psutil.Process(service.process.pid).memory_info().rss < 2**29


def test_who_knows_the_password_logs_on_while_others_guess(folder: Path) -> None:
    with served(Service(folder)) as service, ThreadPoolExecutor(1) as pool:
        service.user("ann")
        password = "a password of ann's"
        answer = service.ask("PUT", "/users/ann/password", json={"password": password})
        answer.raise_for_status()
        stop = threading.Event()
        guessing = pool.submit(ATTACKS["guess_passwords"], service, stop)
        url = service.server["url"] + LOGON
        try:
            service.until(lambda: "a logon has failed" in service.log.read_text())
            found = [requests.get(url, auth=("ann", password), timeout=60).status_code for _ in range(12)]
        finally:
            stop.set()
        guessing.result()
        assert found == [requests.codes.ok] * 12
        assert password not in service.log.read_text()


def test_a_daemon_with_the_launchers_lock_keeps_no_slot(folder: Path) -> None:
    with served(Service(folder, slots=1)) as service:
        first = service.post_archive(
            tar({"daemon.py": (PROGRAMS / "daemon.py").read_bytes()}),
            command=["python", "daemon.py", str(service.out)],
        ).json()["id"]
        service.until((service.out / "daemon").exists)
        daemon = psutil.Process(int((service.out / "daemon").read_text()))
        try:
            second = service.submit("brief.py")
            service.ask("POST", f"/jobs/{first}/stop").raise_for_status()
            service.until(lambda: service.job(first)["state"] == "stopped")
            service.until(lambda: service.job(second)["state"] == "succeeded")
        finally:
            with suppress(psutil.NoSuchProcess):  # it has ended with its job
                daemon.kill()


def spoil_with_folder(path: Path) -> None:
    path.mkdir()


def spoil_with_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("spoil", [os.mkfifo, spoil_with_folder, spoil_with_link])
def test_control_files_that_are_something_else(spoil: Callable[[Path], None], folder: Path) -> None:
    """Each job has something else in place of one of its files; all can be stopped, and nobody waits."""
    with served(Service(folder, slots=12)) as service:
        ann = Bystander(service)
        token = mallory(service)
        names = ("allocation", "events.jsonl", "log", "run/allocation", "run/control", "run/launcher")
        names += ("run/launcher.lock", "run/progress.json", "checkpoint", "run")
        jobs = [service.submit("brief.py", 3600, token=token) for _ in names]
        for job in jobs:
            service.until(lambda job=job: service.has_begun(job))
        for job, name in zip(jobs, names, strict=True):
            path = service.home.job(job).root / name
            if path.exists():
                path.rename(path.with_name("it was here"))
            spoil(path)
        for size in (2, 1):
            ann.resize(size)
            ann.ask()
        for job in jobs:
            service.ask("POST", f"/jobs/{job}/stop", token=token).raise_for_status()
        for job in jobs:
            service.until(lambda job=job: service.job(job)["state"] in ("stopped", "failed"))
        service.until(lambda: service.get("/cluster")["free"] == 11)
        ann.finish()


def test_a_stopped_launcher_of_one_job_is_no_matter_of_others(folder: Path) -> None:
    with served(Service(folder)) as service:
        ann = Bystander(service)
        job = service.submit("brief.py", 3600, token=mallory(service))
        service.until(lambda: service.has_begun(job))
        pid = json.loads(service.home.job(job).launcher.read_text())["pid"]
        os.kill(pid, signal.SIGSTOP)
        for size in (2, 1):
            ann.resize(size)
            ann.ask()
        service.ask("POST", f"/jobs/{job}/stop").raise_for_status()
        service.until(lambda: service.job(job)["state"] == "stopped")
        ann.finish()
