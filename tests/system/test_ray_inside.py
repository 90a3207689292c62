"""Jobs that are started from inside a Ray cluster: with ``ray job submit``, and in a notebook."""

import importlib.util
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from ray_nodes import StartedHead, head_with_dashboard, missing

from harness import BIN, TRACED, ElasticJob, Undisturbed

NO_DASHBOARD = "Ray's dashboard is not installed: pip install 'ray[default]'"

pytestmark = [
    pytest.mark.ray,
    pytest.mark.full,
    pytest.mark.skipif(bool(missing()), reason=f"{missing()}"),
    pytest.mark.skipif(importlib.util.find_spec("aiohttp_cors") is None, reason=NO_DASHBOARD),
]


@pytest.fixture(scope="module")
def head() -> Iterator[StartedHead]:
    with head_with_dashboard(cpus=2) as started:
        yield started


class SubmittedJob(ElasticJob):
    """traced.py as a job of Ray."""

    def submit(self, head: StartedHead) -> None:
        code = self.folder / "code"
        code.mkdir()
        (code / TRACED.name).write_bytes(TRACED.read_bytes())
        launch = ["edt-launch", "--ray", "auto", "--max-np", "2", "--output-dir", str(self.out)]
        options = ["--address", head.dashboard, "--working-dir", str(code)]
        words = [*launch, TRACED.name, str(self.results), "--delay", "0.2"]
        with (self.folder / "stdout").open("wb") as stdout, (self.folder / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [BIN / "ray", "job", "submit", *options, "--", *words],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )


@pytest.fixture
def submitted(tmp_path: Path) -> Iterator[SubmittedJob]:
    one = SubmittedJob(tmp_path / "job")
    yield one
    one.kill()


def test_a_job_is_submitted_to_the_cluster(
    head: StartedHead, submitted: SubmittedJob, undisturbed: Undisturbed
) -> None:
    submitted.submit(head)
    submitted.until_size(2)
    submitted.until_more_steps(3)
    assert submitted.end() == 0, submitted.stdout
    undisturbed.check(submitted)
    assert submitted.survivors() == []


def test_a_notebook_runs_a_job(
    head: StartedHead, job: ElasticJob, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", head.address)
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    launch = ["edt-launch", "--ray", "auto", "--max-np", "2", "--output-dir", str(job.out)]
    words = shlex.join([*launch, str(TRACED), str(job.results), "--epochs", "1"])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"!{words}")])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(job.folder)}}).execute()
    assert job.size() == 2, notebook.cells[0].outputs
    undisturbed.check(job)
