"""Reports to the status server of Kubeflow Trainer."""

import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from edt_launch.core.history.job_history import JobHistory, Mark
from edt_launch.core.system.certificates import ensure_certificate
from edt_launch.launcher.runs.trainjob import Reporter, StatusServer, report

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ann/trainjobs/digits/status"

HALF = JobHistory(
    size=2,
    epoch=1,
    values={
        "loss": 0.25,
        "total_steps": 100,
        "note": "",
        "x" * 65: 1,
        "long": "y" * 100,
        "top1": float("nan"),
    },
    marks=deque(Mark(float(step), step, 2) for step in range(51)),
)


def test_a_report() -> None:
    found = report(50.0, HALF)
    metrics = {metric["name"]: metric["value"] for metric in found.pop("metrics")}
    assert found == {
        "progressPercentage": 50,
        "estimatedRemainingSeconds": 50,
        "lastUpdatedTime": "1970-01-01T00:00:50+00:00",
    }
    assert metrics == {
        "workers": "2", "step": "50", "epoch": "1", "loss": "0.25", "long": "y" * 64, "top1": "nan"
    }  # fmt: skip
    assert set(report(0.0, JobHistory())) == {"lastUpdatedTime", "metrics"}
    assert report(0.0, JobHistory(exit_code=0))["progressPercentage"] == 100
    many = JobHistory(values={f"m{index}": index for index in range(300)})
    assert len(report(0.0, many)["metrics"]) == 256


class Server(HTTPServer):
    """A status server."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, Any]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b'{"message": "Forbidden"}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server() as server:
        certificate, key = ensure_certificate(tmp_path, ["localhost"], time.time())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("prefix", ["KUBEFLOW_TRAINER_SERVER_", "KUBEFLOW_TRAINER_STATUS_"])
def test_reports_are_posted_with_the_present_token(server: Server, tmp_path: Path, prefix: str) -> None:
    token = tmp_path / "token"
    variables = {
        f"{prefix}URL": f"https://localhost:{server.server_port}{PATH}",
        f"{prefix}TOKEN": str(token),
        f"{prefix}CA_CERT": str(tmp_path / "certificate.pem"),
    }
    found = StatusServer.detect(variables)
    assert found is not None
    for text in ("first\n", "second\n"):
        token.write_text(text)
        found.post({"progressPercentage": 7})
    body = {"trainerStatus": {"progressPercentage": 7}}
    assert server.asked == [(PATH, "Bearer first", body), (PATH, "Bearer second", body)]


def test_a_server_that_is_not_there_does_not_hold_up_the_job(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token")
    reporter = Reporter(StatusServer("https://127.0.0.1:1/status", tmp_path / "token"))
    problem = reporter.close(0.0, HALF)
    assert problem is not None
    assert "training goes on" in problem
