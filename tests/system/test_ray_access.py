"""Jobs on a Ray cluster that wants a token: from a shell, from a job of Ray, and from a notebook."""

import importlib.util
import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests
import yaml
from attacked.service import Service, tar
from ray_nodes import RayNodes, head_with_dashboard, missing, ray_nodes

from harness import BIN, TRACED, ElasticJob, Undisturbed, run

pytestmark = [
    pytest.mark.ray,
    pytest.mark.full,
    pytest.mark.skipif(bool(missing()), reason=f"{missing()}"),
]

KUBERAY = Path(__file__).parents[2] / "launch" / "deploy" / "kuberay.yaml"


@pytest.fixture(scope="module", autouse=True)
def _token(_environment: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield


@pytest.fixture(scope="module")
def nodes(_token: None) -> Iterator[RayNodes]:
    with ray_nodes(1, cpus=2) as cluster:
        yield cluster


def test_a_job_needs_the_clusters_token(
    nodes: RayNodes, job: ElasticJob, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--ray", nodes.address)
    job.start(TRACED, job.results, "--epochs", 1, options=options)
    assert job.wait() == 0, job.stderr
    undisturbed.check(job)
    assert job.survivors() == []
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    job.start(TRACED, job.results, "--epochs", 1, options=options)
    assert job.wait() != 0
    assert "the cluster wants a token: set RAY_AUTH_MODE=token" in job.stderr


def test_a_notebook_runs_a_job(
    nodes: RayNodes, tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    command = f"!edt-launch --ray auto --max-np 2 --output-dir out '{TRACED}' '{tmp_path}' --epochs 1"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(command)])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert undisturbed.check_final(tmp_path) == 1, notebook.cells[0].outputs


def test_the_doctor_says_whether_a_cluster_has_a_token(nodes: RayNodes) -> None:
    said = run(BIN / "edt", "doctor", RAY_ADDRESS=nodes.address)
    assert f"a cluster at {nodes.address}, with a token" in said


def test_the_pool_of_the_manifest_for_kubernetes_answers_probes_and_runs_a_job(
    nodes: RayNodes, tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster,) = (one for one in yaml.safe_load_all(KUBERAY.read_text()) if one["kind"] == "RayCluster")
    _, container = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        if "value" in variable:
            monkeypatch.setenv(variable["name"], variable["value"])
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)  # another port than in a pod
    words = container["command"]
    with closing(Service(tmp_path, *words[words.index("serve") + 1 :], slots=None)) as service:
        service.start()
        port = service.ready().server["url"].rpartition(":")[2]
        probe = container["readinessProbe"]["httpGet"]["path"]
        assert requests.get(f"http://127.0.0.1:{port}{probe}", headers={"Host": "10.1.2.3"}, timeout=60).ok
        command = ["python", TRACED.name, str(tmp_path), "--epochs", "1"]
        answer = service.post_archive(tar({TRACED.name: TRACED.read_bytes()}), command=command, max=2)
        answer.raise_for_status()
        service.until(lambda: service.job(answer.json()["id"])["state"] == "succeeded")
    assert undisturbed.check_final(tmp_path) == 1


@pytest.mark.skipif(not importlib.util.find_spec("aiohttp_cors"), reason="needs ray[default]")
def test_a_job_of_ray_runs_a_job_with_what_it_has_brought(tmp_path: Path, undisturbed: Undisturbed) -> None:
    brought, results = tmp_path / "brought", tmp_path / "results"
    brought.mkdir()
    results.mkdir()
    shutil.copy(TRACED, brought / "train.py")
    launch = [BIN / "edt-launch", "--ray", "auto", "--min-np", 2, "--max-np", 2]
    launch += ["--output-dir", tmp_path / "out", "train.py", results, "--epochs", 1]
    with head_with_dashboard(2) as url:
        submit = ["job", "submit", "--address", url, "--working-dir", brought, "--", *launch]
        said = run(BIN / "ray", *submit)
    assert "succeeded" in said
    assert undisturbed.check_final(results) == 1
