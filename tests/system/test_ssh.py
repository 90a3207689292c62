"""Workers on other hosts: an agent there, over ssh; a stand-in for ssh stays on this machine."""

import json
from pathlib import Path

import pytest

from elsewhere import ELSEWHERE, reach
from harness import FAKE_WORKER, ElasticJob


def test_workers_are_started_over_ssh(
    job: ElasticJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts, log = reach(tmp_path, monkeypatch)
    monkeypatch.setenv("MINE", own := 'it\'s "quoted" & has $signs; `and more`')
    job.sizes[1] = "3"
    job.start(FAKE_WORKER, "success", options=(*hosts, "--no-warm-start"))
    assert job.wait() == 0, job.stderr
    assert json.dumps(own) in job.stdout
    assert log.read_text().split() == [ELSEWHERE]
    assert {event["host"] for event in job.events("started")} == {"localhost", ELSEWHERE}
    assert job.size() == 3
    assert job.survivors() == []
