"""Workers on other hosts: an agent there, over ssh; a stand-in for ssh stays on this machine."""

from pathlib import Path

import pytest

from elsewhere import ELSEWHERE, reach
from harness import TRACED, ElasticJob


def test_workers_are_started_over_ssh(
    job: ElasticJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts, log = reach(tmp_path, monkeypatch)
    monkeypatch.setenv("GREETING", 'it\'s "quoted" & has $signs; `and more`')
    job.sizes[1] = "3"
    job.start(TRACED, job.results, options=hosts)
    assert job.end() == 0, job.stderr
    assert log.read_text().split() == [ELSEWHERE]
    assert {event["host"] for event in job.events("started")} == {"localhost", ELSEWHERE}
    assert {row["size"] for row in job.trace()} == {3}
    assert job.survivors() == []
