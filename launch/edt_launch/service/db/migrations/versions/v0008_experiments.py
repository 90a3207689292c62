"""Let a search be of any kind: what was WMLA's definition becomes a search, and a template of its trials."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SEARCH_STATES = {
    "SUBMITTED": "queued", "RUNNING": "running", "RECOVERPEND": "waiting", "FINISHED": "succeeded",
    "FAILED": "failed", "STOPPED": "stopped",
}  # fmt: skip
TRIAL_STATES = {
    "SUBMITTED": "queued", "RUNNING": "running", "FINISHED": "succeeded", "FAILED": "failed",
    "KILLED": "stopped",
}  # fmt: skip
ALGORITHMS = {"ExperimentGridSearch": "list"}
SETTINGS = {
    "randomseed": ("seed", int), "warmup": ("warm_up", int), "initpoints": ("warm_up", int),
    "eicandidate": ("candidates", int), "eta": ("eta", float), "resourcename": ("budget", str),
    "resourcevalue": ("max_budget", int),
}  # fmt: skip
VALUES = {"int": "discreteIntVal", "double": "discreteDbVal", "str": "discreateStrVal"}
TYPES: dict[str, Any] = {"int": int, "double": float, "str": str}


def upgrade() -> None:
    """Add the columns, and translate what there is."""
    op.add_column("searches", sa.Column("kind", sa.String(16), nullable=False, server_default="wmla"))
    op.add_column("searches", sa.Column("template", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("searches", sa.Column("total", sa.Integer(), nullable=True))
    searches = sa.table(
        "searches", sa.column("id"), sa.column("state"), sa.column("definition", sa.JSON),
        sa.column("template", sa.JSON),
    )  # fmt: skip
    trials = sa.table("trials", sa.column("state"))
    connection = op.get_bind()
    for id_, definition in connection.execute(sa.select(searches.c.id, searches.c.definition)).all():
        spec = definition["modelSpec"]
        values = {
            "definition": _search(definition),
            "template": {"args": spec["args"], "sig_name": spec["sigName"]},
        }
        connection.execute(sa.update(searches).where(searches.c.id == id_).values(values))
    for table, states in ((searches, SEARCH_STATES), (trials, TRIAL_STATES)):
        for before, after in states.items():
            connection.execute(sa.update(table).where(table.c.state == before).values(state=after))


def _search(old: dict[str, Any]) -> dict[str, Any]:
    algo = old["algoDef"]
    limits = {"max_minutes": algo["maxRunTime"], "max_trials": algo["maxJobNum"]}
    found: dict[str, Any] = {
        "metric": algo["objectiveMetric"],
        "objective": algo["objective"],
        "algorithm": ALGORITHMS.get(algo["algorithm"], algo["algorithm"].lower()),
        "parameters": {one["name"]: _parameter(one) for one in old["hyperParams"]},
        "configurations": [
            {one["name"]: TYPES[one["dataType"]](one["fixedVal"]) for one in each["hyperParams"]}
            for each in old["experiments"]
        ],
        "max_parallel": algo["maxParalleJobNum"],
        "budget": "maxiteration",
        "eta": algo["hyperbandEta"],
        **{name: limit for name, limit in limits.items() if limit > 0},
    }
    # The first one of a name counts, and WarmUp more than InitPoints.
    params = list(reversed(algo["algoParams"]))
    params.sort(key=lambda param: param["name"].lower() != "initpoints")
    for param in params:
        name, kind = SETTINGS.get(param["name"].lower(), ("", str))
        if name and param["value"]:
            found[name] = kind(float(param["value"])) if kind is int else kind(param["value"])
    return {name: value for name, value in found.items() if (name, value) != ("seed", -1)}


def _parameter(old: dict[str, Any]) -> dict[str, Any]:
    kind = old["dataType"]
    if old["type"] == "Discrete":
        return {"values": list(dict.fromkeys(old[VALUES[kind]]))}
    short = "Int" if kind == "int" else "Db"
    range_ = {
        "type": "int" if kind == "int" else "float",
        "min": old[f"min{short}Val"],
        "max": old[f"max{short}Val"],
    }
    return range_ | {new: old[name] for name, new in (("step", "step"), ("power", "base")) if name in old}
