"""Somebody else at a service while it is attacked, or what is around it breaks."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from attacked import journals
from attacked.service import Service


@contextmanager
def served(service: Service, *, is_quiet: bool = True) -> Iterator[Service]:
    """A service from its start to its end, which nothing keeps from ending; its log shows no mistakes."""
    try:
        service.start()
        yield service.ready()
        assert service.end() == 0
        assert not is_quiet or "Traceback" not in service.log.read_text()
    finally:
        print(service.report())
        service.close()


class Bystander:
    """Another user, whose job trains, and is resized, and who asks what there is."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.token = service.user("ann")
        self.job = service.submit("pooled.py", "--steps", 100_000, token=self.token, min=1, max=3)
        service.until_training(self.job)  # it keeps the limits that it is started with
        self.resize(1)

    def resize(self, size: int) -> None:
        """Have the job grow or shrink, and wait for it."""
        answer = self._service.ask("PATCH", f"/jobs/{self.job}", token=self.token, json={"max": size})
        assert answer.status_code == requests.codes.ok, answer.text
        self._service.until(lambda: self._service.world(self.job) == size)

    def ask(self) -> None:
        """`edt ps` shows the job, and `/healthz` answers."""
        shown = self._service.edt("ps", token=self.token)
        assert shown.returncode == 0, shown.stderr
        assert self.job in shown.stdout.decode()
        url = f"{self._service.server['url']}/healthz"
        answer = requests.get(url, timeout=30, verify=self._service.certificate)
        assert answer.status_code == requests.codes.ok

    def finish(self) -> None:
        """No step was lost or done twice."""
        self._service.finish(self.job)
        self._service.until(lambda: self._service.job(self.job)["state"] == "succeeded")
        done = self._service.steps(self.job)
        assert done == list(range(1, len(done) + 1))
        assert journals.overlaps(self._service.out) == []
