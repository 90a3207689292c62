"""Plain torchrun with its rendezvous from an allocation file."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from harness import BIN, PROGRAMS


def printed(logs: list[Path]) -> set[str]:
    return {line for log in logs for line in log.read_text().splitlines() if line.startswith("rank ")}


@pytest.mark.full
def test_plain_torchrun_takes_its_nodes_from_the_allocation_at_once(tmp_path, monkeypatch):
    def allocate(generation: int, host: str) -> None:
        (tmp_path / "new").write_text(f"# edt allocation v1 generation={generation}\n{host}\n")
        (tmp_path / "new").replace(tmp_path / "allocation")

    def wait_for(lines: set[str]) -> None:
        while not lines <= printed(logs):
            assert [agent.poll() for agent in agents] == [None, None], [log.read_text() for log in logs]
            time.sleep(0.05)

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    allocate(1, "localhost:1 devices=7")
    torchrun = (BIN / "torchrun", "--nnodes=1:4", "--nproc-per-node=1", "--rdzv-backend=edt")
    program = (PROGRAMS / "torchrun_steps.py", tmp_path / "steps", tmp_path / "until")
    logs = [tmp_path / f"log{number}" for number in range(2)]
    agents: list[subprocess.Popen[bytes]] = []
    try:
        for path in logs:
            with path.open("wb") as log:
                command = (*torchrun, f"--rdzv-endpoint={tmp_path / 'allocation'}", *program)
                agents.append(subprocess.Popen(command, stdout=log, stderr=log, env=os.environ, cwd=tmp_path))
        wait_for({"rank 0 of 1 devices 7"})
        while not (tmp_path / "steps").exists():
            time.sleep(0.05)
        steps = int((tmp_path / "steps").read_text())
        allocate(2, "localhost:2 devices=7,5")
        wait_for({"rank 0 of 2 devices 7", "rank 1 of 2 devices 5"})
        (tmp_path / "until").touch()
        assert [agent.wait() for agent in agents] == [0, 0], [log.read_text() for log in logs]
        assert int((tmp_path / "steps").read_text()) > steps
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()


def test_torchrun_finds_the_back_end_and_says_what_is_wrong_with_the_file(tmp_path):
    command = [BIN / "torchrun", "--rdzv-backend=edt", "--rdzv-endpoint=missing", "program.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "No such file" in ended.stderr.splitlines()[-1]
