"""What clients ask about the platform: its configuration, resource plans, Kubernetes."""

from fastapi import APIRouter

from edt_launch import __version__
from edt_launch.adapters.wmla.answers.consumers import Consumers
from edt_launch.adapters.wmla.answers.views import Json
from edt_launch.service.errors import InvalidError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
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
    return Consumers.of(context.store.shares.all()).tree()


@router.get("/resplans/resplan/{name}")
def resource_plan(context: ContextDep, user: CurrentUser, name: str) -> Json:
    """A node of the owners' tree, and what is below it."""
    consumers, own = Consumers.of(context.store.shares.all()), "" if name == ROOT else name
    if own not in consumers:
        raise InvalidError(f"Resource plan {name[:80]!r} not found")
    return consumers.tree(own)


@router.get("/scheduler/kubernetesobjects")
def kubernetes_objects(user: CurrentUser) -> Json:
    """A list without objects: jobs are processes here."""
    return {"items": []}


@router.get("/status")
@router.get("/scheduler/kubernetesobjects/status")
def status(context: ContextDep, user: CurrentUser) -> Json:
    """Whether the service and its database answer."""
    context.store.memory.get("health")
    return {"status": "Running", "version": __version__}
