"""The recipes of `launch/deploy`, against the official schemas: see `prune.py`."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

HERE = Path(__file__).parent
SOURCES = HERE.parents[1]
DEPLOY = SOURCES / "launch" / "deploy"
SCHEMAS = json.loads((HERE / "schemas.json").read_text())


def manifests() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())}


def pods() -> list[dict[str, Any]]:
    spec = manifests()["RayCluster"]["spec"]
    return [group["template"]["spec"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_manifests_are_valid(kind: str) -> None:
    jsonschema.validate(manifests()[kind], SCHEMAS[kind])


def test_what_refers_to_something_names_it() -> None:
    found = manifests()
    cluster, service = found["RayCluster"], found["Service"]
    assert service["spec"]["selector"]["ray.io/cluster"] == cluster["metadata"]["name"]
    for pod in pods():
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert pod["securityContext"]["runAsNonRoot"] is True
    edt = pods()[0]["containers"][1]
    ports = {port["name"] for port in edt["ports"]}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    assert {edt[probe]["httpGet"]["port"] for probe in edt if probe.endswith("Probe")} == ports
    (secret,) = (one["valueFrom"]["secretKeyRef"] for one in edt["env"] if "valueFrom" in one)
    assert secret == {"name": cluster["metadata"]["name"], "key": "auth_token"}  # KubeRay's


def test_the_image_runs_without_root_below_tini() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    last = text.rsplit("\nFROM ", 1)[1]
    (user,) = re.findall(r"^USER (\d+):\d+$", last, re.MULTILINE)
    assert int(user) == pods()[0]["securityContext"]["runAsUser"] > 0
    assert 'ENTRYPOINT ["tini", "-g", "--"]' in last


def test_the_guide_shows_the_batch_script() -> None:
    script = (DEPLOY / "slurm" / "train.sbatch").read_text()
    assert f"```bash\n{script}```" in (SOURCES / "docs" / "how-to" / "slurm.md").read_text()
    assert len(script.splitlines()) == 5
