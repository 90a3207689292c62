"""What clients ask about the platform: its configuration, resource plans, Kubernetes."""

from collections.abc import Mapping

from fastapi import APIRouter

from edt_launch import __version__
from edt_launch.adapters.wmla.answers.views import Json
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.errors import InvalidError
from edt_launch.service.names import ROOT

router = APIRouter()


@router.get("/conf")
def configuration(context: ContextDep, user: CurrentUser) -> dict[str, str]:
    """Names and values; clients ask for them to see whether this is the right address."""
    return {
        "DLI_DATA_FS": str(context.settings.data_folder),
        "DLI_RESULT_FS": str(context.home.jobs),
        "DLI_SHARED_FS": str(context.home.jobs),
        "EDT_VERSION": __version__,
    }


@router.get("/resplans/resplantree")
def resource_plans(context: ContextDep, user: CurrentUser) -> Json:
    """The owners' tree: who shares with whom."""
    return _tree(_parents(context), "")


@router.get("/resplans/resplan/{name}")
def resource_plan(context: ContextDep, user: CurrentUser, name: str) -> Json:
    """A node of the owners' tree, and what is below it."""
    parents, own = _parents(context), "" if name == ROOT else name
    if own not in parents:
        raise InvalidError(f"Resource plan {name[:80]!r} not found")
    return _tree(parents, own)


def _parents(context: ContextDep) -> Mapping[str, str | None]:
    return {"": None} | {node.name: node.parent for node in context.store.shares.all()}


def _tree(parents: Mapping[str, str | None], name: str) -> Json:
    parent = parents[name]
    below = [child for child in sorted(parents) if child and parents[child] == name]
    return {
        "id": name or ROOT,
        "pid": "" if parent is None else parent or ROOT,
        "childTreeDto": [_tree(parents, child) for child in below],
    }


@router.get("/scheduler/kubernetesobjects")
def kubernetes_objects(user: CurrentUser) -> list[Json]:
    """None: jobs are processes here."""
    return []


@router.get("/status")
@router.get("/scheduler/kubernetesobjects/status")
def status(context: ContextDep, user: CurrentUser) -> Json:
    """Whether the service and its database answer."""
    context.store.memory.get("health")
    return {"status": "Running", "version": __version__}
