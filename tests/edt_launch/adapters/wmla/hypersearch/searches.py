"""Definitions of searches, for tests."""

from collections.abc import Mapping
from typing import Any

RATE = {"name": "rate", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0.001, "maxDbVal": 0.1}
UNITS = {"name": "units", "type": "Discrete", "dataType": "INT", "discreteIntVal": [16, 32, 64]}


def content(algorithm: str = "Random", *params: Mapping[str, Any], **algo: Any) -> dict[str, Any]:
    """A search's definition, as clients send it."""
    return {
        "modelSpec": {"sigName": "dli-sig", "args": "--exec-start edtPyTorch --model-main main.py "},
        "algoDef": {
            "algorithm": algorithm,
            "maxRunTime": -1,
            "maxJobNum": 4,
            "maxParalleJobNum": 2,
            "objectiveMetric": "loss",
            "objective": "minimize",
            **algo,
        },
        "hyperParams": list(params or (RATE, UNITS)),
    }


def budgets(resource: int, eta: float = 3) -> dict[str, Any]:
    """What Hyperband wants to know."""
    return {
        "hyperbandEta": eta,
        "algoParams": [
            {"name": "ResourceName", "value": "epochs"},
            {"name": "ResourceValue", "value": str(resource)},
        ],
    }
