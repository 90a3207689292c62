"""Make `schemas.json`: of the official schemas, what the manifests in `launch/deploy` use.

Usage: python tests/deploy/prune.py CRD.yaml OPENAPI.json, which are

- KubeRay's ray-operator/config/crd/bases/ray.io_rayclusters.yaml
- Kubernetes' OpenAPI document, of which `io.k8s.api.core.v1` is read

A property that no manifest uses keeps its name alone, so that a slip in a name is found everywhere.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
MANIFEST = HERE.parents[1] / "launch" / "deploy" / "kuberay.yaml"
KEPT = ("type", "required", "enum", "pattern", "minimum", "maximum", "format")

Schema = dict[str, Any]


def prune(schema: Schema, values: list[Any], schemas: Schema) -> Schema:
    """The part of a schema that counts for these values."""
    references = (
        [schema["$ref"]]
        if "$ref" in schema
        else [part["$ref"] for part in schema.get("allOf", []) if "$ref" in part]
    )
    if references:
        return prune(schemas[references[0].rsplit("/", 1)[1]], values, schemas)
    pruned = {key: schema[key] for key in KEPT if key in schema}
    if schema.get("x-kubernetes-int-or-string"):
        pruned["type"] = ["integer", "string"]
    inner = [value for value in values if isinstance(value, dict)]
    if "properties" in schema:
        pruned["additionalProperties"] = False
        pruned["properties"] = {
            name: prune(part, found, schemas)
            if (found := [value[name] for value in inner if name in value])
            else {}
            for name, part in schema["properties"].items()
        }
    elif isinstance(schema.get("additionalProperties"), dict):
        found = [one for value in inner for one in value.values()]
        pruned["additionalProperties"] = prune(schema["additionalProperties"], found, schemas)
    if "items" in schema:
        found = [one for value in values if isinstance(value, list) for one in value]
        pruned["items"] = prune(schema["items"], found, schemas)
    for key in ("anyOf", "oneOf"):
        if key in schema and "x-kubernetes-int-or-string" not in schema:
            pruned[key] = schema[key]
    return pruned


def main(crd: str, openapi: str) -> None:
    """Write the schemas of the manifest's kinds."""
    definition = yaml.safe_load(Path(crd).read_text())
    kuberay = next(
        one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"] if one["name"] == "v1"
    )
    kubernetes = json.loads(Path(openapi).read_text())["components"]["schemas"]
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    found = {}
    for kind in sorted({document["kind"] for document in documents}):
        schema = kuberay if kind == "RayCluster" else kubernetes[f"io.k8s.api.core.v1.{kind}"]
        found[kind] = prune(schema, [one for one in documents if one["kind"] == kind], kubernetes)
    (HERE / "schemas.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
