"""Reports to the status server of Kubeflow Trainer: progress, time left and metrics of the TrainJob.

The controller sets a URL, the path of a token, which is replaced now and then, and that of its certificate.
A report is ``POST``ed as ``{"trainerStatus": {...}}``; ``kubectl get trainjob`` shows it.
"""

import http.client
import json
import queue
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from edt_launch.core.history.job_history import JobHistory
from edt_launch.launcher.view.pace import remaining

PREFIXES = ("KUBEFLOW_TRAINER_SERVER_", "KUBEFLOW_TRAINER_STATUS_")
"""Of the variables URL, TOKEN and CA_CERT: in Kubeflow Trainer 2.2 and later, and before its release."""

REPORT_INTERVAL = 5.0
"""Seconds between two reports at least, as in Kubeflow's SDK."""

TIMEOUT = 5.0
"""Seconds that the server has for an answer."""

LAST_TIMEOUT = 2.0
"""Seconds for which the end of a job waits for its last report."""

MAX_METRICS = 256
MAX_LENGTH = 64
"""Characters of a metric's name and value; the server refuses a report with a longer one."""

MAX_INT32 = 2**31 - 1


@dataclass(frozen=True)
class StatusServer:
    """Where reports go."""

    url: str
    token: Path
    certificate: Path | None = None

    @classmethod
    def detect(cls, environment: Mapping[str, str]) -> Self | None:
        """The server of the TrainJob in which this process runs; None outside one."""
        for prefix in PREFIXES:
            url, token, certificate = (environment.get(prefix + name) for name in ("URL", "TOKEN", "CA_CERT"))
            if url and token:
                return cls(url, Path(token), Path(certificate) if certificate else None)
        return None

    def post(self, trainer_status: Mapping[str, Any]) -> None:
        """Send one report.

        Raises:
            OSError: it cannot be sent, or a file cannot be read.
            http.client.HTTPException: the answer is no HTTP, or not 200.
            ValueError: the URL or the token is none.
        """
        url = urlsplit(self.url)
        headers = {
            "Authorization": f"Bearer {self.token.read_text().strip()}",
            "Content-Type": "application/json",
        }
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=self.certificate)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                url.hostname or "", url.port, timeout=TIMEOUT, context=context
            )
        else:
            connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT)
        try:
            connection.request("POST", url.path, json.dumps({"trainerStatus": trainer_status}), headers)
            answer = connection.getresponse()
            text = answer.read(1000).decode(errors="replace").strip()
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"status {answer.status} {text}".strip())


def report(now: float, job: JobHistory) -> dict[str, Any]:
    """What a job's status is for the server; `now` is in unix seconds.

    Progress and the time left need the script's `total_steps`.
    """
    found: dict[str, Any] = {"lastUpdatedTime": datetime.fromtimestamp(int(now), UTC).isoformat()}
    step, total = job.step, job.total
    if job.exit_code == 0:
        found |= {"progressPercentage": 100, "estimatedRemainingSeconds": 0}
    elif step is not None and total is not None:
        found["progressPercentage"] = min(100, step * 100 // total)
        if (seconds := remaining(now, job.marks, total)) is not None:
            found["estimatedRemainingSeconds"] = min(MAX_INT32, round(seconds))
    own = {"workers": job.size, "step": step, "epoch": job.epoch}
    values = own | {name: value for name, value in job.values.items() if name != "total_steps"}
    texts = {name: str(value)[:MAX_LENGTH] for name, value in values.items() if value is not None}
    metrics = [{"name": name, "value": text} for name, text in texts.items() if text and _is_good(name)]
    return found | {"metrics": metrics[:MAX_METRICS]}


def _is_good(name: str) -> bool:
    return 0 < len(name) <= MAX_LENGTH


class Reporter:
    """Sends reports in a thread of its own: neither a slow server nor none holds up the job."""

    def __init__(self, server: StatusServer) -> None:
        self._server = server
        self._due = float("-inf")
        self._reports: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=1)
        self._problems: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="edt-trainjob", daemon=True)
        self._thread.start()

    def show(self, now: float, job: JobHistory) -> str | None:
        """Send a report if one is due, unless the last is still under way; what to tell the user, once."""
        if now >= self._due and not self._reports.full():
            self._due = now + REPORT_INTERVAL
            self._reports.put(report(now, job))
        return None if self._problems.empty() else self._problems.get()

    def close(self, now: float, job: JobHistory) -> str | None:
        """Send the last report, for which the job waits `LAST_TIMEOUT` at most."""
        deadline = time.monotonic() + LAST_TIMEOUT
        for last in (report(now, job), None):
            try:
                self._reports.put(last, timeout=max(0.0, deadline - time.monotonic()))
            except queue.Full:
                break
        self._thread.join(max(0.0, deadline - time.monotonic()))
        return None if self._problems.empty() else self._problems.get()

    def _serve(self) -> None:
        is_told = False
        while (next_report := self._reports.get()) is not None:
            try:
                self._server.post(next_report)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if not is_told:
                    what = f"{type(error).__name__}: {error}"
                    self._problems.put(
                        f"the status of the TrainJob could not be sent to {self._server.url} ({what}); "
                        "training goes on, and later reports are tried"
                    )
                is_told = True
