"""Two users of WMLA's REST interfaces, of both generations, share four slots."""

from dataclasses import replace
from pathlib import Path

import pytest
import requests

from wmla_harness import log_rows, train_plainly
from wmla_programs import DIGITS, IMAGES, make_pictures
from wmla_service import Service

PICTURES = replace(
    IMAGES, arguments=("--epochs", "60"), interval=4, epochs=60, epochs_kept=tuple(range(5, 65, 5)), tests=60
)
"""On as many workers as there are slots: the platform tells this program their number."""


class Ann:
    """A user of 1.2.x: name and password with every request, applications by instance group."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self.options = {"auth": ("ann", service.passwords["ann"]), "headers": {"Accept": "application/json"}}
        args = (
            "--exec-start edtPyTorch   --cs-datastore-meta type=fs,data_path=ann "
            "--edt-options maxWorkers=4   --model-dir images_fc --model-main images_fc.py   --epochs 60 "
        )
        service.ask(service.conductor + "/auth/logon", **self.options)
        address = f"{service.learning}/execs?sigName=dli&args={args}"
        self.exec = service.send(address, PICTURES, folder, auth=self.options["auth"])

    def slots(self) -> list[int]:
        """GPU slots of the running applications."""
        address = f"{self.service.conductor}/instances/{self.exec['sigId']}/applications?state=RUNNING"
        return [application["gpuslots"] for application in self.service.ask(address, **self.options)]

    def state(self) -> str:
        found = self.service.ask(f"{self.service.learning}/execs/{self.exec['id']}", **self.options)
        return str(found["state"])

    def log(self) -> str:
        return str(self.service.ask(f"{self.service.learning}/execs/{self.exec['id']}/log", **self.options))


class Bob:
    """A user of 2.x: a token, and applications of the scheduler."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        told = service.ask(service.url + "/auth/v1/logon", auth=("bob", service.passwords["bob"]))
        self.headers = {"X-Auth-Token": told["accessToken"]}
        args = (
            "--exec-start edtPyTorch --cs-datastore-meta type=fs,data_path=bob --workerDeviceNum 1 "
            "--numWorker 4 --model-dir digits_strict --model-main main.py --epochs 8 "
        )
        self.exec = service.send(
            f"{service.learning}/execs/?args={args}", DIGITS, folder, headers=self.headers
        )

    def slots(self) -> list[int]:
        """GPUs of the running applications."""
        address = f"{self.service.learning}/scheduler/engine/applications?state=Running"
        return [found["used_gpu"] for found in self.service.ask(address, headers=self.headers)]

    def state(self) -> str:
        found = self.service.ask(f"{self.service.learning}/execs/{self.exec['id']}", headers=self.headers)
        return str(found["state"])

    def log(self) -> str:
        address = f"{self.service.learning}/execs/{self.exec['id']}/log"
        return requests.get(address, headers=self.headers | {"Accept": "text/plain"}, timeout=60).text


@pytest.mark.full
def test_two_users_share_four_slots(service: Service, tmp_path: Path) -> None:
    alone = train_plainly(tmp_path / "alone", DIGITS).log
    service.slow("ann", PICTURES)
    make_pictures(service.data / "ann")
    service.slow("bob", DIGITS)
    service.start("ann", "bob")

    ann = Ann(service, tmp_path / "sent")
    service.until(lambda: ann.slots() == [4])
    bob = Bob(service, tmp_path / "sent")
    service.until(lambda: ann.slots() == [2] and bob.slots() == [2])
    service.hurry("ann")
    service.until(lambda: ann.slots() == [] and bob.slots() == [4])
    service.until(lambda: ann.state() == "FINISHED")
    service.hurry("bob")
    service.until(lambda: bob.state() == "FINISHED")

    # Loss and accuracy did not jump: to the last digit they are what they would have been with one worker.
    for kind in ("Train", "Test"):
        assert log_rows(bob.log(), kind) == log_rows(alone, kind)
    assert len(log_rows(ann.log())) == PICTURES.mini_batches * PICTURES.epochs
    assert log_rows(ann.log(), "Test") == []  # notebooks take the JSON string for a table of the training
